"""Replace this process by a program that dies with its parent, optionally under another account.

Run as `python -I -S parent_death.py PARENT SIGNAL UID GID PROGRAM [ARGUMENT ...]`. It is a
separate program, because code between fork and exec (`preexec_fn`) is unsafe in a parent with
threads. It imports none of our packages: they are not on its path.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(death_signal: signal.Signals, *, parent: int) -> None:
    """Have the kernel send us a signal when `parent` dies; exit at once if it is dead already.

    The kernel watches the parent's *thread* that started us, not the whole process. Does
    nothing on systems other than Linux.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def change_account(uid: int, gid: int) -> None:
    """Switch to another account and its groups."""
    if (uid, gid) != (os.geteuid(), os.getegid()):
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def main(arguments: list[str]) -> None:
    """Switch account, request the parent-death signal and execute the program."""
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
