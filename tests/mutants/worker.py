"""Bugs of the worker: what it reads, commits, shows, and when."""

from tests.mutants.harness import Mutant

RELEASES = "tests/worker/test_releases.py"
INTERRUPTIONS = "tests/worker/test_interruptions.py"
JOURNAL = "tests/worker/test_journal.py"
INGEST = "tests/worker/test_ingest.py"
REPLAY = "tests/worker/test_replay.py"
UPLOADS = f"{REPLAY}::test_no_neighbouring_upload_moves_an_operation_beyond_its_price"
RESERVED = (f"{RELEASES}::test_only_what_was_reserved_is_run",)
BOUNDED = (
    "tests/worker/test_households.py::TestLinking"
    "::test_a_person_is_bounded_first_and_a_group_truncated_then"
)

MUTANTS = (
    Mutant(
        "worker: sampling anew on resume",
        "worker/journal.py",
        "return tuple(_read(record) for record in found)",
        "return ()",
        (f"{INTERRUPTIONS}::test_resumed_from_the_journal_alone[before-artifacts]",),
    ),
    Mutant(
        "worker: an outcome is used although the answer to its commit was lost",
        "worker/journal.py",
        "        except OUTAGES as error:\n            raise Abandoned from error\n",
        "        except OUTAGES:\n            pass\n",
        (f"{JOURNAL}::test_a_lost_answer_ends_the_attempt",),
    ),
    Mutant(
        "worker: an outcome is used although the lease was lost",
        "worker/journal.py",
        "        except StaleLease as error:\n            raise LeaseLost from error\n",
        "        except StaleLease:\n            pass\n",
        (f"{JOURNAL}::test_a_zombie_commits_nothing",),
    ),
    Mutant(
        "worker: operations are committed for less than they cost",
        "worker/journal.py",
        "price_units=operation.price,",
        "price_units=operation.price // 2,",
        (f"{JOURNAL}::test_reads_what_it_wrote",),
    ),
    Mutant(
        "worker: the dataset is not compared with what was reserved for",
        "worker/jobs.py",
        "        reserved.dataset_hash,\n",
        "        datasets.pinned_hash(dataset, public),\n",
        RESERVED,
    ),
    Mutant(
        "worker: the specification is not compared with what was reserved for",
        "worker/jobs.py",
        "        reserved.spec_hash,\n",
        "        canonical_sha256(spec),\n",
        RESERVED,
    ),
    Mutant(
        "worker: the protected unit is not compared with the account's",
        "worker/jobs.py",
        "        (account.unit, account.relation, account.rows_per_unit),\n",
        "        (protection.unit, protection.relation, protection.max_rows_per_unit),\n",
        RESERVED,
    ),
    Mutant(
        "worker: artifacts become visible before what they cost is anchored",
        "worker/releases.py",
        '        context.advance_anchor()\n        crash_at("before-artifacts")\n',
        '        crash_at("before-artifacts")\n',
        (f"{RELEASES}::test_what_was_spent_is_anchored_first",),
    ),
    Mutant(
        "worker: a database that is behind its anchor is charged",
        "worker/releases.py",
        "        context.check_anchor()\n",
        "",
        (f"{RELEASES}::test_a_database_that_is_behind_is_not_used",),
    ),
    Mutant(
        "worker: a dry run reads the private rows",
        "worker/jobs.py",
        "chunk_store=None if release.dry_run else _open_chunks(context, dataset),",
        "chunk_store=_open_chunks(context, dataset),",
        (f"{RELEASES}::test_dry_run",),
    ),
    Mutant(
        "worker: a person keeps one row more than is priced",
        "worker/ingest.py",
        'TablePlan("rows", schema, owner, protection.max_rows_per_unit)',
        'TablePlan("rows", schema, owner, protection.max_rows_per_unit + 1)',
        (f"{INGEST}::test_people_keep_so_many_rows",),
    ),
    Mutant(
        "worker: linked groups are not truncated",
        "worker/linking.py",
        "limit_rows(theirs, own_key, schema.max_group_size,",
        "limit_rows(theirs, own_key, 10**6,",
        (BOUNDED,),
    ),
    Mutant(
        "worker: groups are truncated and people are not limited",
        "worker/ingest.py",
        'if protection is None or protection.unit != "person":',
        "if True:",
        (BOUNDED,),
    ),
    Mutant(
        "worker: rows without an owner are kept",
        "worker/people.py",
        "if not _words(chunk, identifier).any(axis=1).all():",
        "if False:",
        (f"{INGEST}::test_every_row_must_have_an_owner",),
    ),
    Mutant(
        "worker: an error's own message is shown",
        "worker/releases.py",
        'f"internal error; quote {reference} when you ask for help"',
        'f"internal error; quote {reference} when you ask for help: {error}"',
        (f"{INTERRUPTIONS}::test_bugs_are_told_by_reference",),
    ),
    Mutant(
        "worker: a log tells how many rows there are",
        "worker/releases.py",
        '        crash_at("before-artifacts")\n',
        "        counted = sum(len(next(iter(c.values()))) for c in job.open_table().chunks())\n"
        '        context.log.info("release_counted", operation=counted)\n',
        (f"{REPLAY}::test_nothing_shows_which_of_two_neighbours_was_uploaded[certified]",),
    ),
    Mutant(
        "worker: an ingest may use any amount of memory",
        "worker/ingest.py",
        "limited_memory(context.settings.worker_memory_bytes)",
        "limited_memory(None)",
        (f"{INGEST}::test_an_ingest_may_use_no_more_memory_than_it_is_given",),
    ),
    Mutant(
        "worker: a household's row is kept as often as it was uploaded",
        "worker/ingest.py",
        'TablePlan("groups", schema.table("groups"), schema.groups.key)',
        'TablePlan("groups", schema.table("groups"), schema.groups.key, 2)',
        (f"{UPLOADS}[two levels, household, add_remove]",),
    ),
    Mutant(
        "worker: the content of a person's rows decides in which groups they stay",
        "worker/ingest.py",
        "        group=plan.group_key,\n",
        "",
        (f"{UPLOADS}[two levels, person with 1, replace_one]",),
    ),
)
