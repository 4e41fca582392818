"""Becomes another program that dies with its parent, under another account if asked.

Run as `python -I -S tether.py PARENT SIGNAL UID GID PROGRAM [ARGUMENT ...]`. A program of its own,
because code between fork and exec (`preexec_fn`) is unsafe in a parent with threads. It imports
nothing of ours: it runs before any package can be found.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(death_signal: signal.Signals, *, parent: int) -> None:
    """Have the kernel send us a signal when `parent` dies; leave at once if it is dead already.

    The kernel watches the parent's *thread* that started us, not the whole process. Elsewhere than
    on Linux nothing happens.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def change_account(uid: int, gid: int) -> None:
    """Give up our own account, groups included, for another."""
    if (uid, gid) != (os.geteuid(), os.getegid()):
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def main(arguments: list[str]) -> None:
    """Change account, tie ourselves to the parent and become the program."""
    parent, death_signal, uid, gid = (int(number) for number in arguments[:4])
    program = arguments[4:]
    # A change of account clears the parent-death signal, so it comes first.
    change_account(uid, gid)
    die_with_parent(signal.Signals(death_signal), parent=parent)
    # An ignored signal stays ignored in the next program. Python ignores the first two, and a shell
    # that starts us in the background the others.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.exit(f"cannot run {program[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
