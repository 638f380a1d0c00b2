import pytest


@pytest.mark.webgpu
async def test_adapter():
    from js import navigator

    adapter = await navigator.gpu.requestAdapter()
    assert adapter is not None
    print(adapter.info.vendor)


@pytest.mark.webgpu
@pytest.mark.parametrize("n", [1, 2])
def test_param(n):
    print("hello", n)
    assert n == 1


def test_local():
    pass


async def test_local_async():
    pass
