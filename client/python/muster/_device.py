# SPDX-License-Identifier: MIT
"""Where the tensors of a model lie, and how bytes get from there to a slot, and from a result.

A slot is the memory of the library that a gradient is put in, and a result the memory that a
version lies in. Both are the host's. On the CPU tensors are copied at once. A GPU works through
queues, its streams, and events tell the host how far it has come:

- Gradients are copied on a stream of their own, so that copies and backward() overlap. A copy waits
  for the stream that makes its gradient; the host waits for neither.
- The library reads a slot in the call that hands a piece over, so the event after the copies of
  that piece must have been reached before. No hook waits for an event, because all of backward()
  after that hook would wait too. Each hook hands over the pieces whose event has been reached, and
  step() waits for the events of the rest, one after the other.
- A result is copied on the stream that computes, so whatever is computed on the copy comes after
  it. Before the memory of the result is given back, the event after these copies must have been
  reached.
- A contribution is given up only when nothing is copied into its slot any more.
- Memory that a GPU copies from and to while the host goes on must be pinned. Slots and results stay
  where they are, so they are pinned once. Where that fails, copies still work, and the host waits
  in each of them.

No GPU has run the class Cuda: what Streams does is tested with a driver in its place, which delays
copies until something waits for them."""
from __future__ import annotations

import contextlib
import os
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

import torch

from . import _tensors
from .worker import Worker

_READ_ONLY = 0x08  # cudaHostRegisterReadOnly: results may not be written to


class _Reached:
    """The event of copies that are over when they have begun."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


class Host:
    """The CPU."""

    lends = True  # parameters may be views of the library's memory
    _reached = _Reached()

    def open(self, worker: Worker) -> None:
        """Once, when the worker has joined."""

    def fetch(self, gradient: torch.Tensor, wire: torch.dtype,
              place: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Begins to copy a gradient. Returns flat memory of the host, of the type wire, which has
        the gradient when the event that mark() returns next has been reached. place(): where in
        the slot the gradient belongs; a device that copies it there asks."""
        return _tensors.flat(gradient).to(wire).contiguous()

    def mark(self) -> Any:
        """An event after all copies that fetch() has begun: query() says whether it has been
        reached, synchronize() waits for it."""
        return self._reached

    def backward_is_over(self) -> None:
        """What the device does from now on may change the gradients that were fetched."""

    def finish(self) -> None:
        """Waits for all copies that fetch() has begun."""

    def bring(self, pairs: Iterable[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Copies for each (into, source) from memory of the host to the model. The sources must
        stay as they are until give_back() has returned."""
        for into, source in pairs:
            into.copy_(source)

    def give_back(self) -> None:
        """Waits until the sources of bring() have been read."""

    def close(self) -> None:
        """Before the worker is closed. A second call does nothing, nor does one in a child of the
        process that called open()."""


class Cuda:
    """What Streams asks of a GPU, by torch.cuda."""

    def __init__(self, device: torch.device):
        self._device = device
        self.side = torch.cuda.Stream(device)

    def current(self) -> Any:
        """The stream of the calling thread."""
        return torch.cuda.current_stream(self._device)

    def on(self, stream: Any) -> Any:
        """A context in which copy() uses that stream."""
        return torch.cuda.stream(stream)

    def event(self, stream: Any) -> Any:
        """After all that is on the stream now. A wait for it sleeps, and does not spin, for
        servers and other ranks need the processors."""
        event = torch.cuda.Event(blocking=True)
        event.record(stream)
        return event

    def copy(self, source: torch.Tensor, into: torch.Tensor) -> None:
        """Where types differ, the source is the one on the GPU, which converts it."""
        into.copy_(source.to(into.dtype), non_blocking=True)

    def keep(self, tensor: torch.Tensor, stream: Any) -> None:
        """PyTorch gives the memory of the tensor to no other one until all that is on the stream
        now has been done."""
        tensor.record_stream(stream)

    def pin(self, address: int, size: int, writable: bool) -> None:
        """Raises RuntimeError where it cannot be pinned."""
        with torch.cuda.device(self._device):
            code = int(torch.cuda.cudart().cudaHostRegister(address, size,
                                                            0 if writable else _READ_ONLY))
            if code == 0:
                return
            with contextlib.suppress(RuntimeError):  # CUDA tells this error to the next kernel, too
                torch.ones(1, device=self._device)
            raise torch.cuda.CudaError(code)

    def unpin(self, address: int) -> None:
        with torch.cuda.device(self._device):
            torch.cuda.cudart().cudaHostUnregister(address)


class Streams:
    """A device that copies while the host goes on; the methods of Host are its contract. It is used
    by the thread that uses the worker, and by the one in which PyTorch runs backward(), for which
    the former waits meanwhile."""

    lends = False

    def __init__(self, driver: Any):
        self._driver = driver
        self._brought: List[Any] = []  # events after the copies of bring()
        self._unpin: Optional[Any] = None

    def open(self, worker: Worker) -> None:
        pinned: List[int] = []
        failed: List[RuntimeError] = []
        # The worker has one of these too. At the end of the process the later one is called first.
        self._unpin = weakref.finalize(self, _unpin, self._driver, pinned, self._brought,
                                       os.getpid())
        for region in worker.regions():
            try:
                self._driver.pin(region.address, region.size, region.writable)
                pinned.append(region.address)
            except RuntimeError as e:
                failed.append(e)
        if failed:
            warnings.warn(f"rank {worker.job.rank}: {len(failed)} of the "
                          f"{len(failed) + len(pinned)} buffers of gradients and results cannot be "
                          "pinned, so the program waits while they are copied to or from the GPU: "
                          f"{failed[0]}", RuntimeWarning, stacklevel=2)

    def fetch(self, gradient: torch.Tensor, wire: torch.dtype,
              place: Callable[[], torch.Tensor]) -> torch.Tensor:
        into, side = place(), self._driver.side
        side.wait_stream(self._driver.current())
        with self._driver.on(side):
            self._driver.copy(_tensors.flat(gradient), into)
        self._driver.keep(gradient, side)
        return into

    def mark(self) -> Any:
        return self._driver.event(self._driver.side)

    def backward_is_over(self) -> None:
        self._driver.current().wait_stream(self._driver.side)

    def finish(self) -> None:
        self._driver.side.synchronize()

    def bring(self, pairs: Iterable[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        for into, source in pairs:
            self._driver.copy(source, into)
        self._brought.append(self._driver.event(self._driver.current()))

    def give_back(self) -> None:
        for event in self._brought:
            event.synchronize()
        self._brought.clear()

    def close(self) -> None:
        if self._unpin is not None:
            self._unpin()


def _unpin(driver: Any, pinned: List[int], brought: List[Any], pid: int) -> None:
    """When no copy is under way any more. A GPU that has failed has said so in another call."""
    if os.getpid() != pid:
        return
    with contextlib.suppress(RuntimeError):
        driver.side.synchronize()
        for event in brought:
            event.synchronize()
        for address in pinned:
            driver.unpin(address)


Device = Union[Host, Streams]
KINDS: Dict[str, Callable[[torch.device], Device]] = {
    "cpu": lambda _: Host(),
    "cuda": lambda device: Streams(Cuda(device)),
}


def must_be_known(name: str, tensor: torch.Tensor) -> None:
    """TypeError, in words: the library would read another memory's address as one of its own."""
    if tensor.device.type not in KINDS:
        raise TypeError(f"{name} is on {tensor.device}: muster.torch takes models on the CPU or on "
                        "a GPU of CUDA: model.cpu(), before Sync or Served is made")


def of(device: torch.device) -> Device:
    """For a model whose tensors are all there."""
    return KINDS[device.type](device)
