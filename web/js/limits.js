// What this browser or this address does not give, and what that means here; of the GPU the status strip tells.

const LITTLE = 2; // GB

/**
 * @param {{isolated: boolean, suspends: boolean, memory: number | undefined, kept?: string}} found
 *   whether the page is cross-origin isolated, whether WebAssembly can be suspended, the device's GB, and what a reload leaves
 * @returns {string[]} a remark for each
 */
export function limitsOf({ isolated, suspends, memory, kept = 'The program and the history are kept.' }) {
  const remarks = [];
  if (!isolated) {
    remarks.push(
      'This address is not cross-origin isolated, so Stop ends Python only where it awaits. A busy loop ends by a restart, ' +
        'which loses its names: put an await into long loops, as await train.step(...) is one.',
    );
  }
  if (!suspends) {
    remarks.push(
      'This browser has no JavaScript Promise Integration (JSPI), so a plain call cannot wait: tg.sync(...) raises an ' +
        'error. Everything works with await; current Chrome and Edge have JSPI.',
    );
  }
  if (memory !== undefined && memory <= LITTLE) {
    remarks.push(
      `This device has little memory (${memory} GB). Keep batches and data small; where the browser reloads the page by ` +
        `itself, memory was full. ${kept}`,
    );
  }
  return remarks;
}
