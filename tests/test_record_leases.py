"""Leases of shards and the lock of the writer in PostgreSQL: one owner at a time, and a former owner writes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import recrawl
from recrawl.errors import LeaseLost, RepositoryBusy, StorageFailure
from recrawl.record.rows import Batch
from recrawl.record.storage import Storage
from recrawl.record.store.leases import Lease
from recrawl.record.store.postgres import connection
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import PostgresTarget, parse
from tests.test_record_postgres import cut, page_row

SHARDS = st.integers(0, 2)
WORKERS = st.sampled_from(["a", "b", "c"])
SECONDS = st.sampled_from([150.0, 350.0])
HOUR = 3600.0


@pytest.fixture(scope="module")
def target(postgres_url: str) -> PostgresTarget:
    return parse(f"{postgres_url}?schema=leases")


@pytest.fixture
def store(target: PostgresTarget) -> Iterator[PostgresStore]:
    with closing(PostgresStore(target, create=True)) as made:
        yield made
        with closing(PostgresStore(target)) as last:
            last.db.run(f"DROP SCHEMA {target.schema} CASCADE")


def taken(store: PostgresStore, shard: int, worker: str, seconds: float = HOUR) -> Lease:
    lease = store.leases.take(shard, worker, seconds)
    assert lease is not None
    return lease


class LeaseMachine(RuleBasedStateMachine):
    """Workers that take, renew and release shards, and write with leases old and new. Time passes by moving the ends
    of all leases back."""

    store: PostgresStore

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.epochs: dict[int, int] = {}
        self.owned: dict[int, tuple[Lease, float]] = {}
        self.granted: list[Lease] = []
        self.store.db.fence = None
        self.store.db.run("TRUNCATE leases")

    @rule(shard=SHARDS, worker=WORKERS, seconds=SECONDS)
    def take(self, shard: int, worker: str, seconds: float) -> None:
        before, ends = self.owned.get(shard, (None, 0.0))
        lease = self.store.leases.take(shard, worker, seconds)
        if before is not None and ends > self.now and before.worker != worker:
            assert lease is None
            return
        assert lease is not None
        assert lease.epoch == self.epochs.get(shard, 0) + 1
        self.epochs[shard] = lease.epoch
        self.owned[shard] = lease, self.now + seconds
        self.granted.append(lease)

    @rule(data=st.data(), seconds=SECONDS)
    def renew(self, data: st.DataObject, seconds: float) -> None:
        lease = self.any_lease(data)
        if lease is None:
            return
        if self.holds(lease):
            assert self.store.leases.renew(lease, seconds).epoch == lease.epoch
            self.owned[lease.shard] = lease, self.now + seconds
        else:
            with pytest.raises(LeaseLost):
                self.store.leases.renew(lease, seconds)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = self.any_lease(data)
        if lease is not None:
            assert self.store.leases.release(lease) == self.holds(lease)
            if self.holds(lease):
                del self.owned[lease.shard]

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        lease = self.any_lease(data)
        if lease is None:
            return
        self.store.fence(lease)
        mark = f"{self.now} {len(self.granted)} {lease}"
        try:
            if self.holds(lease):
                self.store.meta.set("written", mark)
            else:
                with pytest.raises(LeaseLost):
                    self.store.meta.set("written", mark)
            assert (self.store.meta.get("written", "") == mark) == self.holds(lease)
        finally:
            self.store.db.fence = None

    @rule()
    def wait(self) -> None:
        self.now += 100
        self.store.db.run("UPDATE leases SET ends = ends - 100 WHERE ends > 0")

    @invariant()
    def lists_agree(self) -> None:
        held = {shard: lease.epoch for shard, (lease, ends) in self.owned.items() if ends > self.now}
        late = {shard: lease.epoch for shard, (lease, ends) in self.owned.items() if ends <= self.now}
        assert {it.shard: it.epoch for it in self.store.leases.holders()} == held
        assert {it.shard: it.epoch for it in self.store.leases.expired()} == late

    def any_lease(self, data: st.DataObject) -> Lease | None:
        return data.draw(st.sampled_from(self.granted)) if self.granted else None

    def holds(self, lease: Lease) -> bool:
        """Nobody else has taken the shard since, even if the lease has ended."""
        return lease.shard in self.owned and self.owned[lease.shard][0].epoch == lease.epoch


def test_a_shard_has_one_owner_and_a_former_one_writes_nothing(store: PostgresStore) -> None:
    machine = type("_Machine", (LeaseMachine,), {"store": store})
    limits = settings(max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=limits)


def test_a_batch_with_an_old_epoch_leaves_nothing(store: PostgresStore, target: PostgresTarget) -> None:
    old = taken(store, 7, "first", seconds=-1)
    with closing(PostgresStore(target)) as worker:
        worker.fence(old)
        worker.commit(Batch(pages=[page_row(0)]), [])  # it has ended, but nobody has taken the shard
        taken(store, 7, "second")
        with pytest.raises(LeaseLost, match="worker first no longer owns shard 7"):
            worker.commit(Batch(pages=[page_row(1)]), [(0, "a.warc.gz", 9)])
        assert (worker.next_id("pages"), worker.warcs.names()) == (1, {})


def test_who_takes_a_shard_waits_for_a_batch_that_is_being_written(
    store: PostgresStore, target: PostgresTarget
) -> None:
    late = taken(store, 1, "first", seconds=-1)
    store.fence(late)
    with closing(PostgresStore(target)) as other:
        other.db.run("SET lock_timeout = '50ms'")
        with store.transaction():
            store.meta.set("x", 1)
            with pytest.raises(StorageFailure, match="lock timeout"):
                other.leases.take(1, "second", HOUR)
        assert taken(other, 1, "second").epoch == late.epoch + 1
    assert store.meta.get("x", 0) == 1


def test_a_lease_holds_for_another_schema_of_the_database(store: PostgresStore, postgres_url: str) -> None:
    lease = taken(store, 0, "first")
    with closing(PostgresStore(parse(f"{postgres_url}?schema=leases_shard"), create=True)) as shard:
        shard.fence(lease)
        shard.meta.set("x", 1)
        taken(store, 0, "first")
        with pytest.raises(LeaseLost):
            shard.meta.set("x", 2)
        assert shard.meta.get("x", 0) == 1


# -- the writer of a repository -----------------------------------------------------------------------------------


def never(_holder: str) -> bool:
    return False


def write(store: PostgresStore, value: int) -> None:
    """Write in a transaction: its beginning is repeated when the connection was cut."""
    with store.transaction():
        store.meta.set("x", value)


def test_the_lock_of_the_database_names_its_holder(store: PostgresStore, target: PostgresTarget) -> None:
    told: list[str] = []
    with closing(PostgresStore(target)) as first:
        first.lock("crawl", never)
        with pytest.raises(RepositoryBusy, match=r"recrawl crawl \(process \d+ on .*\) is working"):
            store.lock("cycle", never)

        def wait(holder: str) -> bool:
            told.append(holder)
            first.close()
            return True

        store.lock("cycle", wait)
    assert told
    assert told[0].startswith("recrawl crawl (process")


def test_a_writer_that_was_cut_goes_on_if_nobody_else_has_written(store: PostgresStore, target: PostgresTarget) -> None:
    store.lock("crawl", never)
    cut(store)
    write(store, 1)
    with closing(PostgresStore(target)) as other:
        with pytest.raises(RepositoryBusy, match="recrawl crawl"):
            other.lock("cycle", never)
        cut(store)
        other.lock("cycle", never)
    with pytest.raises(LeaseLost, match="another process has written"):
        write(store, 2)
    with closing(PostgresStore(target)) as reader:
        assert reader.meta.get("x", 0) == 1


def test_a_writer_that_was_cut_does_not_go_on_beside_another(
    store: PostgresStore, target: PostgresTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", ())
    store.lock("crawl", never)
    cut(store)
    with closing(PostgresStore(target)) as other:
        other.lock("cycle", never)
        with pytest.raises(StorageFailure, match="locked by another process"):
            write(store, 1)


def test_two_folders_with_one_database_do_not_both_write(tmp_path: Path, postgres_url: str) -> None:
    recrawl.init(tmp_path / "one", store=f"{postgres_url}?schema=two_folders").close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with Storage(tmp_path / "one") as first, Storage(tmp_path / "two") as second:
        first.writing("crawl", never, roll_bytes=1 << 20, info=())
        with pytest.raises(RepositoryBusy, match="recrawl crawl"):
            second.writing("cycle", never, roll_bytes=1 << 20, info=())
        with pytest.raises(RepositoryBusy, match="recrawl crawl"):
            second.lock("check", never)
    with Storage(tmp_path / "two") as second:
        second.writing("cycle", never, roll_bytes=1 << 20, info=())
