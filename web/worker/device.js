// Finds out what the library will run on here, and says it in words.

/**
 * @typedef {{kind: 'webgpu' | 'software' | 'numpy', name: string, detail: string}} Device
 * `name` is short, `detail` is a sentence that says why and what to do.
 */

const NUMPY = 'NumPy on the CPU';

/** @returns {Promise<Device>} */
export async function findDevice() {
  if (!self.isSecureContext) {
    return numpy('This address is not secure: browsers give WebGPU to https and localhost only.');
  }
  if (!navigator.gpu) {
    return numpy('This browser has no WebGPU; current Chrome, Edge, Safari and Firefox do.');
  }
  let adapter = null;
  try {
    adapter = await navigator.gpu.requestAdapter();
  } catch (error) {
    return numpy(`WebGPU failed: ${error.message}`);
  }
  if (!adapter) {
    return numpy('WebGPU found no adapter: the graphics driver is blocked, or hardware acceleration is off.');
  }
  return describe(adapter);
}

function numpy(why) {
  return { kind: 'numpy', name: NUMPY, detail: `${why} Everything works, only slower.` };
}

function describe(adapter) {
  const { vendor = '', architecture = '', description = '', isFallbackAdapter = false } = adapter.info ?? {};
  const name = description || [vendor, architecture].filter(Boolean).join(' '); // Firefox gives none
  const software = isFallbackAdapter || adapter.isFallbackAdapter || /swiftshader|llvmpipe|software/i.test(`${name} ${architecture}`);
  if (software) {
    return {
      kind: 'software',
      name: `WebGPU, software adapter${name && ` (${name})`}`,
      detail: 'No graphics card is used: WebGPU is emulated on the CPU. Everything works, only slower.',
    };
  }
  return { kind: 'webgpu', name: `WebGPU (${name || 'unnamed GPU'})`, detail: 'Kernels run on this GPU.' };
}
