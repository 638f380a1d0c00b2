// Files between the reader and Python's working folder.

const HINTS = {
  csv: (name, start) => `np.genfromtxt(${name}, delimiter=","${named(start) ? ', names=True' : ''})`,
  npy: (name) => `np.load(${name})`,
  npz: (name) => `np.load(${name})`,
  safetensors: (name) => `tg.load(${name})`,
  txt: (name) => `open(${name}).read()`,
  json: (name) => `json.load(open(${name}))`,
};
for (const kind of ['png', 'jpg', 'jpeg', 'webp', 'gif']) HINTS[kind] = (name) => `await read_image(${name})`;

/** How a file is read in Python, by its name and, of a table, by whether its first line names the columns. */
export async function hint(file) {
  const kind = file.name.split('.').pop().toLowerCase();
  const start = kind === 'csv' ? await file.slice(0, 10_000).text() : '';
  return (HINTS[kind] ?? ((quoted) => `open(${quoted}, "rb")`))(JSON.stringify(file.name), start);
}

function named(start) {
  return start.split('\n')[0].split(',').some((cell) => Number.isNaN(Number(cell)));
}

/** "12 bytes", "3.4 kB", "1.2 MB" */
export function showSize(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Takes files that are dropped anywhere on the page, or chosen with the button. */
export function takeFiles(button, input, onFiles) {
  button.addEventListener('click', () => input.click());
  input.addEventListener('change', () => {
    onFiles([...input.files]);
    input.value = '';
  });
  const drops = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
  addEventListener('dragover', (event) => {
    if (!drops(event)) return;
    event.preventDefault();
    document.body.classList.add('dropping');
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) document.body.classList.remove('dropping');
  });
  addEventListener('drop', (event) => {
    if (!drops(event)) return;
    event.preventDefault();
    document.body.classList.remove('dropping');
    onFiles([...event.dataTransfer.files]);
  });
}

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
