// Files for and from Python, which runs in a worker and has no document.

/** Gives the user a file. */
export function download(name, bytes) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // the browser has taken it by then
}

/**
 * Lets the user choose a file.
 * @param {string} accept as of an <input>
 * @returns {Promise<Uint8Array | null>} null where they chose none
 * @throws where the browser opens no picker, as it does only right after a click or a key
 */
export async function choose(accept) {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = accept;
  const chosen = new Promise((resolve) => {
    input.onchange = () => resolve(input.files[0]);
    input.oncancel = () => resolve(null);
  });
  input.showPicker();
  const file = await chosen;
  return file && new Uint8Array(await file.arrayBuffer());
}
