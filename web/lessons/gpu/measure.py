import time

from tensorgrad.errors import UnsupportedError
from tensorgrad.runtime import create_runtime
from tensorgrad.wgsl.generate import generate

ROUNDS = 7
WHILE = 0.02  # seconds of a round


async def clock(runtime, runs):
    """Seconds of one run, of several that are queued."""
    few_bytes = next(iter(runtime.store.tensors.values())).range._replace(nbytes=4)
    since = time.perf_counter()
    for _ in range(runs):
        await runtime.submit({})
    await runtime.device.read([few_bytes])  # when these are here, all that was queued before has run
    return (time.perf_counter() - since) / runs


async def kernel_times(runtime, repeats):
    """Seconds of each kernel by the GPU's own timestamps; none where it has no such."""
    try:
        return [time.nanoseconds / 1e9 for time in await runtime.profile({}, repeats)]
    except UnsupportedError:
        return []


async def measure():
    """Both ways by turns, so that whatever else slows the computer slows both; the medians count."""
    if backend.name != "webgpu":
        return show(times={"n": n, "no_gpu": True})
    runtimes, runs, found = {}, {}, {}
    try:
        for way, stages in both().items():
            plan, kernels = stages.lowered.memory.plan, generate(stages.lowered, backend.limits)
            runtimes[way] = await create_runtime(plan, kernels, device=backend.device, values=arrays(n))
            await clock(runtimes[way], 1)  # the first run is slow
            runs[way] = int(np.clip(WHILE / await clock(runtimes[way], 2), 1, 200))
        rounds = [{way: await clock(runtimes[way], runs[way]) for way in runtimes} for _ in range(ROUNDS)]
        for way, runtime in runtimes.items():
            median = np.median([times[way] for times in rounds])
            found[way] = {"clock": median, "kernels": await kernel_times(runtime, runs[way])}
    finally:
        for runtime in runtimes.values():
            runtime.destroy()
    return show(times={"n": n, **found})
