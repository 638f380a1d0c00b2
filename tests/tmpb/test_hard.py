import asyncio, pytest, time
@pytest.fixture(scope="module")
async def res():
    print("open"); yield [1]; print("close")
@pytest.fixture
async def val(res): return res[0]

@pytest.mark.webgpu
async def test_fix(val): assert val == 1
async def test_fix_local(val): assert val == 1
@pytest.mark.webgpu(timeout=2)
def test_busy():
    while True: pass
@pytest.mark.webgpu
def test_after(val): assert val == 1
@pytest.mark.webgpu(timeout=2)
async def test_promise():
    import js
    print("before")
    await js.Promise.new(lambda a, b: None)
@pytest.mark.webgpu
def test_after2(val): assert val == 1
@pytest.mark.webgpu(timeout=2)
async def test_sleep():
    print("before")
    await asyncio.sleep(1000)
@pytest.mark.webgpu
def test_after3(val): assert val == 1
@pytest.mark.webgpu
def test_skip(): pytest.skip("why not")
@pytest.mark.webgpu
@pytest.mark.xfail(reason="bad")
def test_xfail(): assert 0
@pytest.mark.webgpu
@pytest.mark.xfail(reason="bad")
def test_xpass(): pass
@pytest.mark.webgpu
def test_warn():
    import warnings; warnings.warn("x")
