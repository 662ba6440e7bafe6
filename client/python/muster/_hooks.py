# SPDX-License-Identifier: MIT
"""How a rank hears of gradients while a backward() makes them."""
from __future__ import annotations

import weakref
from typing import Any, Callable, List, Sequence, Tuple

import torch
from torch.nn.parallel import DistributedDataParallel


class _Begins:
    """The hook of forward(). A copy of the model, by pickle or deepcopy(), is in no job: there a
    function that gives back what it gets is in its place, and muster is not needed to read it."""

    def __init__(self, begun: Callable[..., None]):
        self._begun = begun

    def __call__(self, *_: Any) -> None:
        self._begun()

    def __reduce__(self) -> Any:
        return getattr, ({}, "get")


def must_take_hooks(model: torch.nn.Module) -> None:
    """TypeError, in words: it does not."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}: a torch.nn.Module is wanted; several "
                        "are given as one, torch.nn.ModuleList([first, second])")
    if isinstance(model, torch.jit.RecursiveScriptModule):
        raise TypeError(f"the model is a {type(model).__name__}, of torch.jit.script(), and takes "
                        "no hooks: give the module that it was made of, in which parts may be "
                        "scripted, and script the whole after the training")


class Hooks:
    """On a model, from listen() until remove(): it is then as it was before.

    ready(name, parameter): its gradient is there, and adds up to what was there before.
    bucket_ready(bucket): where the model is in a DistributedDataParallel, in place of ready.
    begun(): a forward() begins; a backward() that was interrupted has no end.
    All three are bound methods. The model has only weak references to their object."""

    def __init__(self, ready: Callable[[str, torch.nn.Parameter], None],
                 bucket_ready: Callable[[Any], None], begun: Callable[[], None]):
        self._ready, self._begun = _weakly(ready), _weakly(begun)
        self._bucket_ready = weakref.WeakMethod(bucket_ready)
        self._held: List[Any] = []

    def listen(self, model: torch.nn.Module,
               params: Sequence[Tuple[str, torch.nn.Parameter]]) -> None:
        ready = self._ready
        self._held.append(model.register_forward_pre_hook(_Begins(self._begun)))
        if isinstance(model, DistributedDataParallel):
            _listen_to_buckets(model, self._bucket_ready)
            return
        for name, p in params:
            if hasattr(p, "register_post_accumulate_grad_hook"):
                hook = p.register_post_accumulate_grad_hook(lambda q, n=name: ready(n, q))
                self._held.append(hook)
            else:  # the node that adds to p.grad; torch before 2.1 has no other way
                with torch.inference_mode(False), torch.enable_grad():  # whatever is around Sync()
                    node = p.expand_as(p).grad_fn.next_functions[0][0]
                hook = node.register_hook(lambda *_, n=name, q=p: ready(n, q))
                self._held += [hook, node]

    def remove(self) -> None:
        for hook in self._held:
            if hasattr(hook, "remove"):
                hook.remove()
        self._held = []


def _weakly(method: Callable[..., None]) -> Callable[..., None]:
    """Calls the method as long as its object is there."""
    weak = weakref.WeakMethod(method)

    def call(*arguments: Any) -> None:
        there = weak()
        if there is not None:
            there(*arguments)

    return call


def _listen_to_buckets(model: Any, bucket_ready: "weakref.WeakMethod[Any]") -> None:
    """A DistributedDataParallel takes a hook once and keeps it: the hook asks who listens now."""
    present: Any = getattr(model, "_muster_listener", None)
    if present is None:
        present = model._muster_listener = [lambda: None]

        # Without annotations: torch 1.13 compares them as written.
        def hook(_, bucket):  # type: ignore[no-untyped-def]
            listener = present[0]()
            if listener is not None:
                listener(bucket)
            buffer = bucket.buffer()
            done: Any = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
            done.set_result(buffer)
            return done

        model.register_comm_hook(None, hook)
    present[0] = bucket_ready
