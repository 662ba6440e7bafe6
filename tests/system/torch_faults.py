#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks of muster.torch that are killed, that fail, and that fork: the others go on, and who comes
back has the same bits as they have at each version.

usage: torch_faults.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_faults.py --list
"""
import contextlib
import gc
import json
import os
import signal
import sys
import zlib

from base import HANG_S, check, main, must, until
from torch_case import Ranks, prepare, refused, together
from torch_places import GIVING, LIVES, Donor, Life, Place, Traced, spread
from torch_training import FAR, Training, is_alike, lines, newest, reaches

# A session is killed before the job begins, where the others wait for it, and others later.
FIRST = (Place("worker.py Worker.start call", 1, False),
         Place("worker.py Worker.start return", 1, False),
         Place("_sync.py Sync.step call", 1, False),
         Place("torch_training.py Training.apply return", 1, False))
EARLY, LATE = 21, 23  # places of sessions that come back, and of the steps that they make then


def killed_at_any_point(a):
    """At 50 points at least, three ranks of five at a time, each of which is started again at once.
    Each of them has come back in a session before it is killed in its turn."""
    prepare(a)
    if sys.version_info < (3, 11):
        print("left out: before 3.11 Python does not say which class a function is of")
        return

    def starts(rank, place=None, of=Life):
        ranks.again(rank, lambda rank, ranks: of(rank, ranks, place).run())

    def goes_on(rank):
        ranks.again(rank, lambda rank, ranks: Donor(rank, ranks).run(teller=4))

    def is_back(rank):
        ranks.killed(rank)
        must(len(lines(ranks, rank)) >= LIVES, f"rank {rank} was not back", ranks.server.said())

    def lives(rank, places):
        """Yields when a session of the rank has begun, which is waited for then."""
        for place in places:
            starts(rank, place)
            yield
            if place.late:
                is_back(rank)
            else:
                ranks.killed(rank)
                starts(rank)
                yield
                is_back(rank)

    with Ranks(a, 5, None, *FAR) as ranks:
        goes_on(0)
        goes_on(1)
        starts(2, FIRST[0])
        ranks.killed(2)
        for rank, place in zip((2, 3, 4), FIRST[1:]):
            starts(rank, place)
        for rank in (2, 3, 4):
            ranks.killed(rank)
            starts(rank)
        is_back(3)
        is_back(4)
        is_back(2)
        starts(2, of=Traced)
        is_back(2)
        with open(ranks.path("traces")) as f:
            traces = json.load(f)
        places = spread(traces[0], EARLY, False) + spread(traces[1], LATE, True)
        running = [lives(rank, places[rank - 2::3]) for rank in (2, 3, 4)]
        while running:
            running = [life for life in running if next(life, running) is not running]
        for rank in (2, 3, 4):
            goes_on(rank)
            reaches(ranks, rank, newest(ranks, 0) + 3)
        for i, _ in enumerate(GIVING):
            ranks.tell(f"give.{i}")
            ranks.killed(4, signal.SIGKILL)
            goes_on(4)
            ranks.hear(f"donor.{i}")
            donor = ranks.ended_first()
            ranks.killed(donor)
            goes_on(donor)
            for rank in (4, donor):
                reaches(ranks, rank, newest(ranks, (donor + 1) % 4) + 3)
        came = sum(os.path.exists(ranks.path(p.mark())) for p in (*FIRST, *places)) + len(GIVING)
        check(f"ranks were killed at {came} points, and came back after each", came >= 50)
        is_alike(ranks)


PAD = bytes(12 << 20)  # more than what sockets hold


def donor_killed_while_it_gives(a):
    """The first donor is killed when the library has its state to send; another is asked, and both
    come back."""
    prepare(a)

    def padded(training):
        """The state of a Training, and a pad: it takes a while to send."""
        def get():
            return {"model": training.model.state_dict(), "opt": training.opt.state_dict(),
                    "schedule": training.schedule.state_dict(), "pad": PAD}

        def set_(state):
            must(state["pad"] == PAD, "the pad has changed")
            training.model.load_state_dict(state["model"])
            training.opt.load_state_dict(state["opt"])
            training.schedule.load_state_dict(state["schedule"])

        return get, set_

    class Padded(Training):
        def joins(self):
            self.options["state"] = padded(self)
            super().joins()

    def donor(rank, ranks):
        import muster
        give = muster.Worker.give_state

        def gives(worker, state):
            give(worker, state)
            with contextlib.suppress(FileExistsError):  # the first one alone
                os.close(os.open(ranks.path(f"donor.{rank}"), os.O_CREAT | os.O_EXCL))
                os.link(ranks.path(f"donor.{rank}"), ranks.path("donor"))
                os.kill(os.getpid(), signal.SIGKILL)

        if rank < 3:
            muster.Worker.give_state = gives
        return Padded(rank, ranks).run(teller=3)

    def back(rank, ranks):
        return Padded(rank, ranks).run(teller=3)

    def is_donor(ranks, rank):
        name = ranks.path(f"donor.{rank}")  # another may be asked meanwhile, and make its own
        return os.path.exists(name) and os.path.samefile(name, ranks.path("donor"))

    with Ranks(a, 4, donor, *FAR) as ranks:
        reaches(ranks, 3, 3)
        ranks.killed(3, signal.SIGKILL)
        ranks.again(3, back)
        ranks.hear("donor")
        killed = next(rank for rank in range(3) if is_donor(ranks, rank))
        ranks.killed(killed)
        ranks.again(killed, back)
        for rank in (3, killed):
            must(until(lambda r=rank: f"rank {r} comes back with the state of"
                       in ranks.server.said(), HANG_S), ranks.server.said())
        reaches(ranks, 3, newest(ranks, (killed + 1) % 3) + 3)
        reaches(ranks, killed, newest(ranks, 3) + 3)
        print(ranks.server.said())
        is_alike(ranks)


def error_in_a_rank(a):
    """It ends as a program with that error does, and the others go on without it: they wait neither
    for its lease nor for their patience, which are both longer than this test may take."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Linear(4, 4)
        sync = muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))
        before = None
        while not sync.finished:
            model.zero_grad()
            loss = model(torch.ones(1, 4)).sum()
            if rank == 1 and sync.version == 3:
                raise LookupError("a sample that cannot be read")
            loss.backward()
            sync.step()
            if before is None and os.path.exists(ranks.path("gone")):
                before = sync.version
            if rank == 0 and before is not None and sync.version >= before + 10:
                sync.finish("enough")
        return sync.version, before

    with Ranks(a, 3, work, "--lease", "600s", "--patience", "600s") as ranks:
        status = ranks.waited(1)
        check("its exit status is 1", os.waitstatus_to_exitcode(status) == 1)
        ranks.tell("gone")
        (last, before), (other, _) = ranks.end(0), ranks.end(2)
        check(f"the others have gone on from version {before} to {last}",
              last == other >= before + 10 >= 13)
        check("and nobody's lease or patience has ended", not any(
            words in ranks.server.said() for words in ("silent for its lease", "the patience of")))


def workers_of_a_loader(a):
    """Are forked when a gradient has been handed over in part. One uses the handle, one drops it,
    one is killed: the job does not notice."""
    prepare(a)
    batches_of_epoch = 6

    def work(rank, ranks):
        import muster
        import muster.torch
        import torch
        from torch.utils.data import DataLoader, Dataset, get_worker_info
        held = {}

        class Data(Dataset):
            def __len__(self):
                return 2 * batches_of_epoch

            def __getitem__(self, index):
                if rank == 0 and index == 6:  # of the fourth batch, the second one of this worker
                    must(get_worker_info().id == 1, "the loader has changed")
                    in_a_worker(held["epoch"])
                return torch.ones(4)

        def in_a_worker(epoch):
            if epoch == 1:
                refused(muster.Forked, held["sync"].step, "forked")
                refused(muster.Forked, held["sync"].worker.wait, "forked")
            if epoch == 2:
                worker = held["sync"].worker
                for name in ("model", "opt", "sync"):
                    del held[name]
                worker.close()  # what the collector does, in some versions of PyTorch when it ends
                del worker
                gc.collect()
                ranks.tell("dropped")
            if epoch == 3:
                ranks.hear("loading")  # so the loader raises its error when no step goes on
                os.kill(os.getpid(), signal.SIGKILL)

        torch.manual_seed(1)
        held["model"] = torch.nn.Linear(4, 1)
        held["opt"] = torch.optim.SGD(held["model"].parameters(), 0.01)
        held["sync"] = muster.torch.Sync(held["model"], held["opt"])

        def backward(x):
            held["opt"].zero_grad()
            held["model"](x).sum().backward()

        loader = DataLoader(Data(), batch_size=2, num_workers=2 * (rank == 0))
        killed = 0
        for epoch in range(5):
            held["epoch"] = epoch
            backward(torch.ones(2, 4))
            batches = iter(loader)
            held["sync"].step()
            for number in range(batches_of_epoch):
                try:
                    if (rank, epoch, number) == (0, 3, 3):
                        ranks.tell("loading")
                    x = next(batches, torch.ones(2, 4))
                except RuntimeError as e:
                    must(epoch == 3 and "DataLoader worker" in str(e), e)
                    killed += 1
                    x = torch.ones(2, 4)
                backward(x)
                held["sync"].step()
        del batches
        return killed, held["sync"].version, zlib.crc32(held["model"].weight.detach().numpy())

    with Ranks(a, 2, work) as ranks:
        said = ranks.ends()
        check(f"{said}: a worker was killed, and one has dropped the handle",
              said[0][0] >= 1 and os.path.exists(ranks.path("dropped")))
        check("both ranks have made all steps", said[0][1:] == said[1][1:]
              and said[0][1] == 5 * (batches_of_epoch + 1))


def handle_in_a_loader(a):
    """A worker of a DataLoader that uses the handle: Forked arrives, with its sentence, and the job
    goes on. A child is told so too where there was no backward()."""
    prepare(a)

    def work(rank, ranks):
        import muster
        import muster.torch
        import torch
        from torch.utils.data import DataLoader, Dataset
        model = torch.nn.Linear(4, 1)
        sync = muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))

        class Data(Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, index):
                return uses()

        for uses in (sync.step, sync.worker.wait):
            refused(muster.Forked, lambda: list(DataLoader(Data(), num_workers=1)),
                    "a child that it forked")
        model(torch.ones(1, 4)).sum().backward()
        return sync.step().version

    with Ranks(a, 1, work) as ranks:
        check("the job goes on", ranks.ends() == [1])


def handlers_of_signals(a):
    """Their exceptions come when a version has been applied whole, and step() then goes on: so a
    loader may say that its worker has died."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Linear(4, 1)
        torch.nn.init.zeros_(model.bias)  # multiples of 0.25: no rounding
        opt = torch.optim.SGD(model.parameters(), 0.25)

        def apply():
            if sync.version == 1:
                for _ in range(2):
                    signal.raise_signal(signal.SIGCHLD)
            opt.step()

        def died(signo, frame):
            raise LookupError("a worker has died")

        sync = muster.torch.Sync(model, opt, apply)
        signal.signal(signal.SIGCHLD, died)
        for step in range(3):
            model.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            before = model.bias.item()
            if step == 1:
                refused(LookupError, sync.step, "has died")
                must(signal.getsignal(signal.SIGCHLD) is died, "the handler has changed")
                must(model.bias.item() == before - 0.25 and sync.version == 2, "it is not whole")
            sync.step()
            must(model.bias.item() == before - 0.25, "not one version")
        return sync.version

    with Ranks(a, 1, work) as ranks:
        check("each version is whole", ranks.ends() == [3])


CASES, BY_HAND = together(
    kills=(killed_at_any_point, donor_killed_while_it_gives),
    faults=(error_in_a_rank, workers_of_a_loader, handle_in_a_loader, handlers_of_signals))
main(CASES, "musterd", "library", unlisted=BY_HAND)
