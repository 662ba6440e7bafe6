#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks of muster.torch that are killed, that fail, and that fork: the others go on, and who comes
back has the same bits as they have at each version.

usage: torch_faults.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_faults.py --list
"""
import contextlib
import gc
import os
import signal
import zlib

from base import HANG_S, check, main, must, until
from torch_case import Ranks, prepare, refused, together
from torch_training import FAR, Training, is_alike, newest, reaches

# Where a session is killed: a method, which call of it, and whether before it or after it. The
# session that follows is killed at the next point. A first session does not take a state.
POINTS_OF_COMING_BACK = (
    ("Worker.start", 1, "before"),  # the others wait for it
    ("Sync.step", 1, "before"),
    ("Worker.start", 1, "before"),  # of a job that is running, from here on
    ("Worker.take_state", 1, "before"),
    ("Worker.take_state", 1, "after"),
    ("Sampler.load_state_dict", 1, "after"),
    ("Net.load_state_dict", 1, "after"),
    ("AdamW.load_state_dict", 1, "before"),
    ("AdamW.load_state_dict", 1, "after"),
    ("Schedule.load_state_dict", 1, "after"),
    ("Net.forward", 1, "before"),
    ("Training.in_backward", 1, "before"),
    ("Sync.step", 1, "before"),
    ("Sync.step", 1, "after"),
)
POINTS_OF_STEPS = (
    ("Worker.start", 1, "after"),  # the job has begun, and it has not made a step
    ("Net.forward", 2, "after"),
    ("Training.in_backward", 8, "after"),  # the second of six gradients, in the second backward
    ("Training.in_backward", 18, "after"),
    ("Worker.push_ranges", 2, "before"),
    ("Worker.push_ranges", 3, "after"),
    ("Worker.push", 2, "before"),
    ("Worker.push", 3, "after"),
    ("Worker.wait", 2, "after"),
    ("Sampler.version", 3, "after"),
    ("AdamW.step", 2, "before"),
    ("AdamW.step", 3, "after"),
    ("Worker.state_wanted", 3, "after"),
)


def dies(point):
    """This process is killed when it comes to the point."""
    import muster.torch
    import torch
    method, call, when = point
    owners = {"Worker": muster.Worker, "Sync": muster.torch.Sync, "Sampler": muster.torch.Sampler,
              "Net": torch.nn.Sequential, "AdamW": torch.optim.AdamW, "Training": Training,
              "Schedule": torch.optim.lr_scheduler.ExponentialLR}
    owner, name = owners[method.split(".")[0]], method.split(".")[1]
    real, calls = getattr(owner, name), []

    def called(*arguments, **named):
        calls.append(1)
        if len(calls) == call and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*arguments, **named)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, called)


def killed_at_any_point(a):
    """At 27 points, two ranks at a time, both of which are started again at once."""
    prepare(a)
    points = {2: iter(POINTS_OF_COMING_BACK), 3: iter(POINTS_OF_STEPS)}

    def session(rank):
        point = next(points.get(rank, iter(())), None)

        def run(rank, ranks):
            if point:
                dies(point)
            return Training(rank, ranks).run()

        return run

    with Ranks(a, 4, None, *FAR) as ranks:
        for rank in range(4):
            ranks.again(rank, session(rank))
        ranks.killed(2)
        ranks.again(2, session(2))
        for _ in POINTS_OF_STEPS:
            ranks.killed(2)
            ranks.killed(3)
            reaches(ranks, 0, newest(ranks, 0) + 3)
            ranks.again(2, session(2))
            ranks.again(3, session(3))
        must(next(points[2], None) is None and next(points[3], None) is None, "points are left")
        reaches(ranks, 2, newest(ranks, 0) + 5)
        reaches(ranks, 3, newest(ranks, 0) + 5)
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
    """It ends as a program with that error does, and the others go on without it."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Linear(4, 4)
        sync = muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))
        over = None
        while not sync.finished:
            model.zero_grad()
            loss = model(torch.ones(1, 4)).sum()
            if rank == 1 and sync.version == 3:
                raise LookupError("a sample that cannot be read")
            loss.backward()
            sync.step()
            if rank == 0 and over is None and os.path.exists(ranks.path("gone")):
                over = sync.version + 10
            if sync.version == over:
                sync.finish("enough")
        return sync.version

    with Ranks(a, 3, work, "--min-workers", "1") as ranks:
        status = ranks.waited(1)
        check("its exit status is 1", os.waitstatus_to_exitcode(status) == 1)
        ranks.tell("gone")
        ended = [ranks.end(0), ranks.end(2)]
        check(f"the others have made {ended[0]} versions", ended[0] == ended[1] >= 13)


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
    faults=(error_in_a_rank, workers_of_a_loader, handlers_of_signals))
main(CASES, "musterd", "library", unlisted=BY_HAND)
