"""`python -m benchmarks.service`: all measurements, on temporary servers.

Clients, service, workers and servers share one machine, so the results include the load of all of them.
"""

import argparse
import resource

from benchmarks.service.answers import free_answers
from benchmarks.service.ledger import ledger_operations
from benchmarks.service.measure import MEBIBYTE
from benchmarks.service.reads import fill_a_page, reads
from benchmarks.service.releases import FITTING, releases_at_the_edge
from benchmarks.service.stack import running_stack
from benchmarks.service.uploads import upload_and_ingest

OPEN_FILES = 8192


def main() -> None:
    """Run all measurements. Those with workers come first: later ones leave releases in the queue."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--upload-mib", type=int, default=2048, help="size of the uploaded table")
    parser.add_argument("--submissions", type=int, default=1000, help=f"at least {FITTING}")
    parser.add_argument("--clients", type=int, default=50, help="how many ask at once")
    parser.add_argument("--only-reads", action="store_true", help="leave out all other figures")
    given = parser.parse_args()
    # A thousand connections at once, on both sides.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with running_stack(max_upload_bytes=given.upload_mib * MEBIBYTE) as stack:
        if given.only_reads:
            fill_a_page(stack)
            reads(stack, clients=given.clients)
            return
        upload_and_ingest(stack, given.upload_mib)
        free_answers(stack)
        releases_at_the_edge(stack, submissions=given.submissions, clients=given.clients)
        reads(stack, clients=given.clients)
        ledger_operations(stack, workers=4)


if __name__ == "__main__":
    main()
