/* Updates forms and states without reloading the page. Every page works without this file. */
"use strict";

const PAUSE = 300;
const POLL = 1000;
const PROBLEM = "application/problem+json";

const ask = (address, options = {}) =>
  fetch(address, { credentials: "same-origin", redirect: "manual", ...options });

const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

const posted = (form, button) => {
  const body = new URLSearchParams(new FormData(form));
  if (button) body.set("action", button.value);
  return { method: "POST", body };
};

/* Not form.action: a button of that name would hide it. */
const target = (form) => form.getAttribute("action");

const state = (field) => (field.type === "checkbox" ? field.checked : field.value);

const fields = (form) => [...form.elements].filter((each) => each.id);

/* Replace a form by a new one that the server renders for the current choices. */
async function refresh(form, button) {
  const sent = new Map(fields(form).map((each) => [each.id, state(each)]));
  const answer = await ask(target(form), posted(form, button || { value: "update" }));
  const fresh = answer.type === "opaqueredirect" ? null : parsed(await answer.text()).getElementById(form.id);
  if (!fresh) return location.reload();
  // Keep what was typed while the request was running.
  for (const old of fields(form)) {
    const same = fresh.querySelector(`#${CSS.escape(old.id)}`);
    if (!same || sent.get(old.id) === state(old)) continue;
    if (old.type === "checkbox") same.checked = old.checked;
    else same.value = old.value;
  }
  for (const each of form.querySelectorAll("details[open][id]:not([data-closes])")) {
    fresh.querySelector(`#${CSS.escape(each.id)}`)?.setAttribute("open", "");
  }
  const focused = document.activeElement?.id;
  form.replaceWith(document.adoptNode(fresh));
  enliven(fresh);
  once(fresh);
  fresh.querySelectorAll("[data-drop]").forEach(droppable);
  const problem = fresh.querySelector("[data-problem]");
  const last = button?.dataset.focus && [...fresh.querySelectorAll(button.dataset.focus)].pop();
  if (problem || last) (problem || last).focus();
  else if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/* A preview beside a form that is being filled in. Only the response to the newest request is shown. */
function previewer(form) {
  const address = form.dataset.preview;
  let timer = 0;
  let newest = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const number = ++newest;
      const aside = form.querySelector("#preview")?.parentElement;
      aside?.setAttribute("aria-busy", "true");
      try {
        const answer = await ask(address, posted(form));
        if (answer.type === "opaqueredirect") return location.reload();
        const fresh = parsed(await answer.text()).getElementById("preview");
        const shown = form.querySelector("#preview");
        if (number !== newest || !fresh || !shown) return;
        if (shown.querySelector("details[open]")) fresh.querySelector("details")?.setAttribute("open", "");
        shown.replaceWith(document.adoptNode(fresh));
      } finally {
        if (number === newest) aside?.removeAttribute("aria-busy");
      }
    }, PAUSE);
  };
}

function enliven(form) {
  const preview = form.dataset.preview ? previewer(form) : () => {};
  form.addEventListener("input", (event) => {
    if (!event.target.hasAttribute("data-refresh")) preview();
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("select[data-refresh]")) refresh(form);
  });
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button?.hasAttribute("data-refresh")) {
      event.preventDefault();
      refresh(form, button);
    }
  });
}

/* A second click sends nothing while the first request is running. */
function once(form) {
  form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (form.dataset.sent) return event.preventDefault();
    // A download leaves the page as it is, so its form can be sent again.
    if (form.method === "post" && !target(form).endsWith("/samples")) form.dataset.sent = "yes";
    event.submitter?.setAttribute("aria-busy", "true");
    setTimeout(() => event.submitter?.removeAttribute("aria-busy"), 2000);
  });
  addEventListener("pageshow", () => delete form.dataset.sent);
}

/* Show the progress of uploads. */
function uploading(form) {
  const bar = form.querySelector("[data-upload-progress]");
  const fault = form.querySelector("[data-upload-fault]");
  const button = form.querySelector("button");
  const refuse = (message) => {
    fault.textContent = message;
    fault.hidden = false;
    bar.classList.add("unseen");
    button.disabled = false;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    const most = Number(form.dataset.mostBytes);
    if (file && file.size > most) return refuse(`The file is larger than ${most.toLocaleString("en")} bytes; compress it.`);
    const request = new XMLHttpRequest();
    request.open("POST", target(form));
    request.setRequestHeader("Accept", PROBLEM);
    request.upload.onprogress = (each) => { if (each.lengthComputable) bar.value = (100 * each.loaded) / each.total; };
    request.onerror = () => refuse("The upload was interrupted; try again.");
    request.onload = () => {
      if (request.status < 400) return location.reload();
      try { refuse(JSON.parse(request.responseText).detail); } catch { refuse("The upload failed; try again."); }
    };
    fault.hidden = true;
    bar.classList.remove("unseen");
    button.disabled = true;
    request.send(new FormData(form));
  });
}

/* A file that is dropped on a text box is read there; only its beginning, because tables may be large. */
const DROPPED_BYTES = 2 ** 22;
function droppable(box) {
  const mark = (event) => {
    event.preventDefault();
    box.classList.toggle("dropping", event.type === "dragover");
  };
  box.addEventListener("dragover", mark);
  box.addEventListener("dragleave", mark);
  box.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    mark(event);
    const text = await file.slice(0, DROPPED_BYTES).text();
    // The rows of a table stay on this machine: only its header is put into the form.
    box.value = /^\s*[<{[]/.test(text) ? text : text.split(/\r?\n/, 1)[0];
    box.form.querySelector("button[value=paste]").click();
  });
}

/* Fetch a part of a page at intervals, while the server marks it as changing. */
async function poll(part) {
  const answer = await ask(part.dataset.poll).catch(() => null);
  if (answer && answer.ok) {
    const fresh = parsed(await answer.text()).getElementById(part.id);
    // The rest of the page depends on the state: other buttons, other sections.
    if (!fresh || fresh.dataset.state !== part.dataset.state) return location.reload();
  }
  setTimeout(poll, POLL, part);
}

/* Show the progress of a release. When it ends, the stream ends and the page is reloaded. */
function follow(section) {
  const bar = section.querySelector("[data-progress]");
  const text = section.querySelector("[data-progress-text]");
  const spent = document.querySelector("[data-spent]");
  const state = section.querySelector(".state");
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const events = new EventSource(section.dataset.events);
  events.addEventListener("progress", (event) => {
    const { done, total, rho_spent: rho } = JSON.parse(event.data);
    bar.max = total || 1;
    bar.value = done;
    text.textContent = `Step ${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    if (spent) spent.textContent = number.format(rho);
  });
  events.addEventListener("state", (event) => {
    const now = JSON.parse(event.data).state;
    if (["succeeded", "failed", "cancelled"].includes(now)) {
      events.close();
      location.reload();
    } else {
      state.textContent = now;
      state.className = `state state-${now}`;
      if (now === "running") text.textContent = "A worker has started";
    }
  });
}

document.querySelectorAll("form[data-live]").forEach(enliven);
document.querySelectorAll("[data-drop]").forEach(droppable);
document.querySelectorAll("form[data-upload]").forEach(uploading);
document.querySelectorAll("form:not([data-upload])").forEach(once);
document.querySelectorAll("[data-poll]").forEach((part) => setTimeout(poll, POLL, part));
document.querySelectorAll("[data-events]").forEach(follow);
document.querySelector("[data-problem]")?.focus();
