# SPDX-License-Identifier: MIT
"""Proves from the workers' logs that every version is what its set says, to the bit.

It knows nothing of the server. Gradients are computed again from (rank, incarnation, ticket), or
read where the worker kept them; the tree, the division and the update are done once more with
NumPy's float32. The logs are those of history.h. What is proven, prove() says.
"""
import bisect
import glob
import itertools
import math
import os
import re

import numpy as np

import optimizer_step
import schedules
from policies import policy_of
from vectors import F32, checksum, loaded, stored, through, values

COUNTED = 1
VERDICTS = ["none", "counted", "late", "stale", "cancelled", "refused", "outlier", "damaged"]
SERVERS_OWN = 0
SLOTS_MAX = 4  # MST_SLOTS_MAX


class Broken(Exception):
    """The history is not what it has to be; says where."""


class Push:
    def __init__(self, log, words):
        self.log, self.ticket, self.tag = log, int(words[1]), int(words[2])
        self.weight, self.is_sum = float(words[3]), int(words[4])
        self.verdict = None  # (verdict, version), once heard
        self.unread = False  # no server has read it: its rank came back, and was not told of it

    @property
    def order(self):
        return self.log.rank, self.log.incarnation, self.ticket

    def __repr__(self):
        return "rank {}, session {}, ticket {}".format(*self.order)

    def gradient(self):
        kept = self.log.path + ".grad"
        if not self.log.keeps:
            return through(values(self.log.elems, *self.order), self.log.type)
        size = -(-self.log.elems // self.log.stride) * (4 if self.log.type == F32 else 2)
        with open(kept, "rb") as f:
            f.seek((self.ticket - 1) * size)
            data = f.read(size)
        if len(data) != size:
            raise Broken(f"{kept}: no gradient of ticket {self.ticket}")
        return loaded(data, self.log.type)


class Outcome:
    def __init__(self, words):
        (self.verdict, self.ticket, self.counted_in, self.version, self.fresh,
         self.finished) = map(int, words[1:7])
        self.whole, self.sample = words[7:9]
        self.lr_scale, self.weight = map(float, words[9:11])
        self.at_ns = int(words[11])
        shares = [share.split(":") for share in words[13:]]
        self.set = [(int(rank), int(count), float(weight)) for rank, count, weight in shares]
        if len(self.set) != int(words[12]):
            raise ValueError("a set that is not whole")


class Log:
    """What one session of a worker wrote."""

    def __init__(self, path):
        self.path, self.pushes, self.outcomes, self.errors = path, {}, [], []
        self.verdicts, self.end, self.proven = [], None, 0
        self.course = []  # [(version, policy)]: from that version on; []: it is always the same
        self.newest = 0  # number of the last push or pass
        self.keeps = os.path.exists(path + ".grad")
        with open(path) as f:
            text = f.read()
        lines = text[: text.rfind("\n") + 1].splitlines()
        if not lines or not lines[0].startswith("job "):
            raise Broken(f"{path}: does not begin with its job")
        for number, line in enumerate(lines, 1):
            try:
                self.read(line.split())
            except (ValueError, IndexError) as e:
                raise Broken(f"{path}:{number}: what is {line!r}? ({e})") from None

    def read(self, words):
        what = words[0]
        if self.end is not None:
            raise ValueError("it is after the end")
        if what == "job":
            self.rank, self.incarnation, self.workers, self.elems = map(int, words[1:5])
            self.type, self.result_type, self.owner, self.stride = map(int, words[5:9])
            self.policy = words[9] if len(words) > 9 else ""
        elif what == "verdict":
            self.verdicts.append(tuple(map(int, words[1:5])))
        elif what == "push":
            push = Push(self, words)
            self.number(push.ticket)
            self.pushes[push.ticket] = push
            self.proven = len(self.outcomes)
        elif what == "void":
            del self.pushes[int(words[1])]
            self.newest -= 1
        elif what == "pass":
            self.number(int(words[1]))
        elif what == "outcome":
            self.outcomes.append(Outcome(words))
            self.outcomes[-1].pushed = len(self.pushes)
        elif what == "error":
            self.errors.append(" ".join(words))
        elif what == "end":
            self.end = int(words[1])
        else:
            raise ValueError("no such line")

    def under(self, version):
        """The policy under which that version was made."""
        return max([(0, self.policy), *(c for c in self.course if c[0] <= version)])[1]

    def number(self, ticket):
        """Pushes and passes are numbered one after the other."""
        if ticket != self.newest + 1:
            raise Broken(f"{self.path}: ticket {ticket} where ticket {self.newest + 1} should be")
        self.newest = ticket

    @property
    def finished(self):
        return bool(self.outcomes) and bool(self.outcomes[-1].finished)

    @property
    def sound(self):
        """Outcomes whose result no later error made void: see -ENOTCONN in muster.h."""
        return self.outcomes if not self.errors else self.outcomes[: self.proven]


# ---- verdict: one verdict per ticket ----


def may_be_in(push, version):
    """By the window of its policy."""
    window = policy_of(push.log.under(version)).window
    behind = version - 1 - push.tag
    return 0 <= behind <= (behind if window is None else window)


def judge(push, verdict, version):
    if push.verdict is not None and push.verdict != (verdict, version):
        raise Broken(f"{push} has two verdicts: {push.verdict} and {(verdict, version)}")
    push.verdict = verdict, version
    if verdict != COUNTED:
        return
    behind = version - 1 - push.tag
    if behind < 0:
        raise Broken(f"{push}: of version {push.tag}, and counted in {version}")
    if not may_be_in(push, version):
        raise Broken(f"{push}: {push.log.under(version)} counted it {behind} versions late")


def hear_verdicts(log, kills):
    last = 0
    for out in log.outcomes:
        if not out.verdict or not out.ticket:
            continue
        if out.verdict >= len(VERDICTS):
            raise Broken(f"{log.path}: verdict {out.verdict}")
        push = log.pushes.get(out.ticket)
        if push is None:
            raise Broken(f"{log.path}: a verdict for ticket {out.ticket}, which was never pushed")
        if push.verdict is not None:
            raise Broken(f"{push} has two verdicts")
        if out.ticket < last:
            raise Broken(f"{log.path}: the verdict of ticket {out.ticket} came after {last}'s")
        last = out.ticket
        judge(push, out.verdict, out.counted_in)
    mute = [p for p in log.pushes.values() if p.verdict is None]
    if mute and (log.finished or (log.end == 0 and not kills and not is_leaving(log, mute))):
        raise Broken(f"{mute[0]} has no verdict")


def is_leaving(log, mute):
    """A worker that leaves does not hear of what it pushed last."""
    return not log.finished and [p.ticket for p in mute] == sorted(log.pushes)[-len(mute) :]


def hear_earlier_verdicts(logs):
    """What a rank that came back was told of the session before it that had started."""
    by_session = {(log.rank, log.incarnation): log for log in logs}
    for log in logs:
        check_told(log, by_session)
        for incarnation, ticket, verdict, version in log.verdicts:
            earlier = by_session.get((log.rank, incarnation))
            if incarnation >= log.incarnation or earlier is None or ticket not in earlier.pushes:
                raise Broken(f"{log.path}: the verdict of ticket {ticket} of session "
                             f"{incarnation}, which was never pushed")
            judge(earlier.pushes[ticket], verdict, version)
    for log in logs:
        for push in pushes_before(log, by_session).values():
            push.unread = push.verdict is None


def pushes_before(log, by_session):
    """The pushes of the session before it that had started."""
    before = max((s for s in by_session if s[0] == log.rank and s[1] < log.incarnation),
                 default=None)
    return by_session[before].pushes if before else {}


def check_told(log, by_session):
    """All verdicts that the session before has not heard are told, but of what no server had read:
    that is at most one push in each slot, and one that was about to be."""
    pushes = pushes_before(log, by_session)
    if not pushes:
        return
    before = next(iter(pushes.values())).log
    told = {ticket for incarnation, ticket, *_ in log.verdicts if incarnation == before.incarnation}
    mute = {ticket for ticket, push in pushes.items() if push.verdict is None}
    lost = {ticket for ticket in mute - told if ticket < max(pushes) - SLOTS_MAX or
            ticket < max(told, default=0)}
    if lost:
        raise Broken(f"{log.path}: the verdicts of {sorted(lost)} of session "
                     f"{before.incarnation} are lost")


# ---- order: what a worker may see after what ----


def check_order(log, kills):
    before = None
    for out in log.outcomes:
        if before is not None:
            step = out.version - before.version
            if step < 0:
                raise Broken(f"{log.path}: version {out.version} after {before.version}")
            if log.owner != SERVERS_OWN and step > 1:
                raise Broken(f"{log.path}: version {out.version} after {before.version}, where "
                             "workers need every one")
            if bool(out.fresh) != (step > 0) and not out.finished:
                raise Broken(f"{log.path}: version {out.version} is called "
                             f"{'fresh' if out.fresh else 'the same'} after {before.version}")
            if before.finished and (not out.finished or out.verdict or step):
                raise Broken(f"{log.path}: an outcome after the last")
        if (out.verdict == COUNTED and out.version < out.counted_in
                and log.owner == SERVERS_OWN
                and policy_of(log.under(out.counted_in)).own_version):
            raise Broken(f"{log.path}: version {out.version} after a push that is part of "
                         f"version {out.counted_in}")
        before = out
    seen = {out.version for out in log.outcomes}
    for push in log.pushes.values():
        if push.tag not in seen:
            raise Broken(f"{push}: computed on version {push.tag}, which it never saw")
    if not kills and (log.errors or log.end != 0):
        raise Broken(f"{log.path}: {log.errors or 'it does not end well'}")


def check_bound(logs):
    """Under ssp a worker that goes on has pushed no more than the bound beyond the slowest. What
    the next
    version is made of may be counted already, while that waits for a buffer."""
    if logs[0].course or not logs[0].policy.startswith("ssp:"):
        return
    if not all(log.finished for log in logs):
        return
    bound = int(logs[0].policy.split(":")[1])
    clocks = {log: sorted(p.verdict[1] for p in log.pushes.values() if p.verdict[0] == COUNTED)
              for log in logs}
    for log in logs:
        for out in log.outcomes:
            least = min(bisect.bisect_right(clock, out.version + 1) for clock in clocks.values())
            if not out.finished and out.pushed > least + bound:
                raise Broken(f"{log.path}: goes on with version {out.version} after {out.pushed} "
                             f"pushes, the slowest has {least} in it")


# ---- sets: the same for all, and what the verdicts say ----


class Seen:
    """What a version is, agreed by all who saw it."""

    def __init__(self, out):
        self.whole, self.sample, self.set = out.whole, out.sample, out.set
        self.lr_scale, self.weight = out.lr_scale, out.weight

    def differs(self, other):
        for name, mine in vars(self).items():
            if mine != getattr(other, name):
                return f"its {name} is {mine}, another worker saw {getattr(other, name)}"
        return None


def agree(logs):
    seen = {}
    for log in logs:
        for out in log.sound:
            mine = Seen(out)
            differs = mine.differs(seen.setdefault(out.version, mine))
            if differs:
                raise Broken(f"{log.path}: version {out.version}: {differs}")
    for log in logs:  # what an error made void may agree or not; but somebody must have seen it
        for out in log.outcomes:
            seen.setdefault(out.version, Seen(out))
    ends = {log.outcomes[-1].version for log in logs if log.finished}
    if len(ends) > 1 or (ends and max(ends) != max(seen)):
        raise Broken(f"the job ended at versions {sorted(ends)}, version {max(seen)} was seen")
    return seen


def check_set(version, seen, have):
    """have: the contributions of the version, all of them."""
    got = {}
    for push in have:
        count, weight = got.get(push.log.rank, (0, 0.0))
        got[push.log.rank] = count + 1, weight + push.weight
    shares = [(rank, *got[rank]) for rank in sorted(got)]
    if shares != seen.set:
        raise Broken(f"version {version}: its set is {seen.set}, the counted are {shares}")
    if seen.weight != sum(weight for _, _, weight in shares):
        raise Broken(f"version {version}: its weight is {seen.weight}, its set is {shares}")
    one_each = have and policy_of(have[0].log.under(version)).one_each
    if one_each and any(count != 1 for _, count, _ in shares):
        raise Broken(f"version {version}: a rank is in it twice: {shares}")


def completions(version, seen, have, mute):
    """The counted of a version, with any of those whose worker ended before it heard: each way in
    which they make up the set."""
    got = {}
    for push in have:
        got[push.log.rank] = got.get(push.log.rank, 0) + 1
    choices = []
    for rank, count, _ in seen.set:
        missing = count - got.get(rank, 0)
        if missing > 0:
            fitting = [p for p in mute if p.log.rank == rank and p.verdict is None
                       and may_be_in(p, version)]
            choices.append(list(itertools.combinations(fitting, missing)))
    for choice in itertools.product(*choices):
        yield sorted([*have, *itertools.chain(*choice)], key=lambda push: push.order)


# ---- sums ----


class Rules:
    """What of the server's options makes the bits."""

    def __init__(self, optimizer="none", group=8, lr_scale="auto", compensate=False,
                 weigh="samples", schedule="constant", clip=0.0, distance=0.0):
        self.optimizer, self.group, self.weigh = optimizer, group, weigh
        self.lr_scale, self.schedule = lr_scale, schedule
        by, _, batch = lr_scale.partition(":")
        self.batch = float(batch) if by == "samples" else 0.0
        self.clip, self.shortened = clip, 0  # of workers; how many contributions it has shortened
        self.distance, self.bounded = distance, 0  # --lr-distance; how many rates it has bounded
        self.discount(compensate)
        self.optimizer, _, figures = optimizer.partition(":")
        named = [f if "=" in f else f"{name}={f}"  # sgd:0.1,0.9 is short for its rate and momentum
                 for f, name in itertools.zip_longest(figures.split(","), ("lr", "momentum"))
                 if f]
        more = dict(figure.split("=") for figure in named)
        self.tensors = int(more.pop("tensors", 0))
        self.figures = optimizer_step.figures(self.optimizer, more)

    def discount(self, compensate):
        """Is each contribution divided by its staleness?"""
        self.compensate = compensate
        auto = not compensate and not self.optimizer.startswith("outer")
        self.linear = self.lr_scale == "linear" or (self.lr_scale == "auto" and auto)


def scales(elems, tensors):
    """Scales of rate and decay, by element, as a test worker has them; one number where it gives
    none."""
    if tensors == 0:
        return np.float32(1), np.float32(1)
    lr, decay = np.ones(elems, np.float32), np.ones(elems, np.float32)
    for i in range(tensors):
        here = slice(elems * i // tensors, elems * (i + 1) // tensors)
        lr[here] = (1, 0.5, 0, 2)[i % 4]
        decay[here] = 1 if i % 4 == 2 else (1, 0, 3)[i % 3]
    return lr, decay


def tree(parts, group):
    """parts: rank -> list of float32 leaves in seq order."""
    total, groups = None, {}
    for rank in sorted(parts):
        acc = None
        for leaf in parts[rank]:
            acc = leaf if acc is None else acc + leaf
        key = rank // group
        groups[key] = acc if key not in groups else groups[key] + acc
    for key in sorted(groups):
        total = groups[key] if total is None else total + groups[key]
    return total


def commits_each(log, version):
    """Is the version made of one contribution by its policy? Then weights cancel."""
    text = log.under(version)
    policy = policy_of(text)
    quorum = policy.quorum_of(text) or 0
    if policy.alone or quorum > 0:
        return policy.alone or quorum == 1
    return policy.one_each and log.workers + quorum <= 1


def by_rank(have, figure):
    """The sum in double, of each rank in order, then of the ranks in order."""
    ranks = {}
    for push in have:
        ranks[push.log.rank] = ranks.get(push.log.rank, 0.0) + figure(push)
    total = 0.0
    for rank in sorted(ranks):
        total += ranks[rank]
    return total


def mean_of(version, have, rules):
    parts = {}
    log = have[0].log
    divides = rules.optimizer != "add" or policy_of(log.under(version)).divides
    weighs = rules.weigh == "samples" and divides and not commits_each(log, version)
    for push in have:
        stale = (version - 1) - push.tag
        c = 1.0 / stale if rules.compensate and stale > 1 else 1.0
        g = push.gradient()
        shorter = shortening(push, g, rules)
        if weighs:
            c = np.float32(c * (1.0 if push.is_sum else push.weight) * shorter)
        else:
            c = np.float32(c / (push.weight if push.is_sum else 1.0) * shorter)
        parts.setdefault(push.log.rank, []).append(g if c == 1 else c * g)
    total = tree(parts, rules.group)
    divisor = np.float32(by_rank(have, lambda push: push.weight) if weighs else len(have))
    return total if not divides or divisor == 1 else total / divisor


BLOCK = 4096  # elements whose squares are summed at a time, counted from the vector's start; a
# block ends where a tensor does


def squares(block):
    """In sixteen lanes, each in order; then their halves."""
    padded = np.zeros(-(-len(block) // 16) * 16)
    padded[:len(block)] = block.astype(np.float64) ** 2
    lanes = np.add.accumulate(padded.reshape(-1, 16))[-1]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def square_of(vector, first, end):
    """The sum of squares of the elements from @first up to @end: of one tensor, or of all."""
    starts = [first, *range((first // BLOCK + 1) * BLOCK, end, BLOCK), end]
    return math.fsum(squares(vector[a:b]) for a, b in zip(starts, starts[1:]))


def norm_of(vector, first, end):
    return math.sqrt(square_of(vector, first, end))


def norms_of(vector, tensors):
    """For each element that of its tensor, of @tensors as a test worker has them; 0: of all."""
    ends = [len(vector) * i // max(tensors, 1) for i in range(max(tensors, 1) + 1)]
    norms = [norm_of(vector, first, end) for first, end in zip(ends, ends[1:])]
    return np.repeat(norms, np.diff(ends))


def shortening(push, gradient, rules):
    """By what the worker's own clipping multiplies its contribution."""
    if not rules.clip:
        return 1.0
    norm = norm_of(gradient, 0, len(gradient)) / (push.weight if push.is_sum else 1)
    rules.shortened += norm > rules.clip
    return float(np.float32(rules.clip / norm)) if norm > rules.clip else 1.0


def clipped(mean, clip):
    norm = norm_of(mean, 0, len(mean))
    factor = np.float32(clip / norm if norm > clip else 1)
    return mean if factor == 1 else factor * mean


class Model:
    """The parameters, where servers own them."""

    def __init__(self, logs, rules):
        job = logs[0]
        starts = [log.path + ".start" for log in logs if os.path.exists(log.path + ".start")]
        self.rules, self.workers = rules, job.workers
        self.states = optimizer_step.NONE
        self.samples = 0.0  # counted up to the version at hand
        self.lr_scale, self.decay_scale = scales(job.elems, rules.tensors)
        if starts:
            with open(starts[0], "rb") as f:
                self.theta = loaded(f.read(), job.result_type)
        else:
            self.theta = through(values(job.elems, 999, 0, 0), job.result_type)
        self.type, self.published = job.result_type, [self.theta]  # by version

    def goes_on(self, theta, states):
        self.theta, self.states = theta, states
        if self.rules.distance:
            self.published.append(through(theta, self.type))

    def rate_scale(self, version, have):
        by_micro = policy_of(have[0].log.under(version)).by_micro
        parts = len({push.log.rank for push in have}) if by_micro else len(have)
        linear = parts / self.workers if self.rules.linear else 1.0
        if self.rules.batch:
            linear = sum(push.weight for push in have) / (self.rules.batch * self.workers)
        scale = linear * schedules.factor(self.rules.schedule,
                                          self.samples + sum(push.weight for push in have))
        if not self.rules.distance:
            return scale
        moved = self.published[-1] - self.published[have[0].tag]
        square = square_of(moved, 0, len(moved))
        most = self.rules.distance / square / self.rules.figures["lr"] if square else math.inf
        self.rules.bounded += most < scale
        return min(most, scale)

    def after(self, version, total, scale):
        """(result, parameters, states) with a version's total; scale: of its rate."""
        r = self.rules
        if r.optimizer == "none":
            return total, self.theta, self.states
        if r.figures.get("clip", 0) != 0:
            total = clipped(total, r.figures["clip"])
        step = optimizer_step.Step(r.figures, version, scale, self.lr_scale, self.decay_scale,
                                   lambda vector: norms_of(vector, r.tensors))
        theta, states = optimizer_step.STEPS[r.optimizer](step, self.theta, total, self.states)
        return theta, theta, states


def recompute(version, seen, ways, model, job):
    """Takes the first way of making up the set that gives the bits. Return: its contributions."""
    tried = []
    for have in ways:
        check_set(version, seen, have)
        scale = model.rate_scale(version, have)
        if not math.isclose(seen.lr_scale, scale, rel_tol=1e-15):  # cos() may differ in a bit
            raise Broken(f"version {version}: its rate is multiplied by {seen.lr_scale}, not "
                         f"{scale}")
        result, theta, states = model.after(version, mean_of(version, have, model.rules),
                                            seen.lr_scale)
        bits = checksum(stored(result, job.result_type))
        tried.append(f"{bits} of {have}")
        if bits == seen.sample:
            model.goes_on(theta, states)
            return have
    raise Broken(f"version {version}: workers saw {seen.sample}, its set {seen.set} gives "
                 + ("; or ".join(tried) or "nothing: its contributions are not there"))


# ---- the whole ----


class Proof:
    def __init__(self, logs):
        self.newest = self.checked = 0
        self.counts = []  # of contributions, by version
        self.tickets = sum(len(log.pushes) for log in logs)
        self.verdicts = set()
        self.told = sum(len(log.verdicts) for log in logs)
        self.logs = logs
        self.parameters = {}  # by version, of those that could be computed again

    @property
    def lost(self):
        return self.newest - self.checked

    def must_not_have(self, verdict):
        count = sum(p.verdict is not None and p.verdict[0] == verdict
                    for log in self.logs for p in log.pushes.values())
        if count:
            raise Broken(f"{count} of {self.tickets} are {VERDICTS[verdict]}")

    def must_not_be_stale_again(self):
        """No worker has computed a gradient twice in vain."""
        for log in self.logs:
            verdicts = [log.pushes[ticket].verdict for ticket in sorted(log.pushes)]
            stale = [v is not None and VERDICTS[v[0]] == "stale" for v in verdicts]
            for at, pair in enumerate(zip(stale, stale[1:]), 1):
                if all(pair):
                    raise Broken(f"{log.path}: contributions {at} and {at + 1} are both stale")

    def __str__(self):
        gap = f", {self.lost} could not be" if self.lost else ""
        return (f"{self.checked} of {self.newest} versions recomputed to the bit{gap}; "
                f"{self.tickets} tickets with one verdict each")


def read_logs(prefix, kills, course):
    """kills: a worker may have been killed before it wrote a line."""
    paths = [p for p in glob.glob(glob.escape(prefix) + ".*.*")
             if re.fullmatch(r"\.\d+\.\d+", p[len(prefix) :])
             and not (kills and os.path.getsize(p) == 0)]
    if not paths:
        raise Broken(f"no logs {prefix}.RANK.INCARNATION")
    logs = sorted((Log(path) for path in paths), key=lambda log: (log.rank, log.incarnation))
    for log in logs:
        # a later session is told the policy that is in force then
        for name in ("workers", "elems", "type", "result_type", "owner",
                     *([] if course else ["policy"])):
            if getattr(log, name) != getattr(logs[0], name):
                raise Broken(f"{log.path}: {name} is {getattr(log, name)}, not "
                             f"{getattr(logs[0], name)} as in {logs[0].path}")
    for log in logs:
        log.course = course
    return logs


def prove(prefix, rules, kills=False, course=()):
    """Every ticket has exactly one verdict, heard by its worker or told to the session after it;
    nobody saw versions out of order; all who saw a version saw the same; its set is the counted;
    and its bits are those of its set. kills: workers may end badly, and not hear. course:
    [(version, policy)] from version 1 on, of a job whose policy has changed."""
    logs = read_logs(prefix, kills, course)
    for log in logs:
        hear_verdicts(log, kills)
        check_order(log, kills)
    hear_earlier_verdicts(logs)
    if not kills:
        check_bound(logs)
    seen = agree(logs) if any(log.outcomes for log in logs) else {}
    proof = Proof(logs)
    counted, mute = {}, []
    for push in (p for log in logs for p in log.pushes.values()):
        if push.verdict is None and not push.unread:
            mute.append(push)
        elif push.verdict and push.verdict[0] == COUNTED:
            counted.setdefault(push.verdict[1], []).append(push)
    proof.verdicts = {p.verdict[0] for log in logs for p in log.pushes.values() if p.verdict}
    proof.newest = max(seen, default=0)
    if not kills and max(counted, default=0) > proof.newest:
        raise Broken(f"counted in version {max(counted)}, which nobody saw")
    model = Model(logs, rules)
    proof.parameters[0] = model.theta
    for version in range(1, proof.newest + 1):
        have = sorted(counted.get(version, []), key=lambda push: push.order)
        if course:
            rules.discount(logs[0].under(version).startswith("softsync:"))
        if version not in seen:
            whole = len(have) == 1 and commits_each(logs[0], version)
            if not have or not whole and any(p.verdict is None for p in mute):
                break  # nobody saw it, and who was in it cannot be known
            total = mean_of(version, have, rules)
            model.goes_on(*model.after(version, total, model.rate_scale(version, have))[1:])
        else:
            have = recompute(version, seen[version],
                             completions(version, seen[version], have, mute), model, logs[0])
            for push in have:
                push.verdict = push.verdict or (COUNTED, version)
        model.samples += by_rank(have, lambda push: push.weight)
        proof.counts.append(len(have))
        proof.parameters[version] = model.theta
        proof.checked += 1
    return proof
