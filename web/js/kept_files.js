// Files that the reader gave to Python, kept by this browser: Python finds them in its working folder at the next visit.

const [DATABASE, STORE] = ['tensorgrad files', 'files'];
const PATIENCE = 3000; // ms after which a storage that does not answer counts as none: some browsers' hangs for good

export const MOST = 64_000_000; // bytes of all files together

/** @returns {Promise<File[]>} by their names; none where the browser keeps nothing */
export function keptFiles() {
  return within('readonly', (store) => store.getAll()).catch(() => []);
}

/** Keeps a file, in place of one of its name. Rejects where the browser does not, or where there are too many bytes. */
export async function keepFile(file) {
  const others = (await keptFiles()).filter(({ name }) => name !== file.name);
  const sum = others.reduce((sum, { size }) => sum + size, file.size);
  if (sum > MOST) throw new RangeError(`only ${MOST / 1e6} MB are, all files together`);
  await within('readwrite', (store) => store.put(file, file.name));
}

export function forgetFile(name) {
  return within('readwrite', (store) => store.delete(name));
}

async function within(mode, ask) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('the browser does not answer')), PATIENCE));
  const database = await Promise.race([opened(), late]);
  try {
    const transaction = database.transaction(STORE, mode);
    const request = ask(transaction.objectStore(STORE));
    return await new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error ?? new Error('the browser refuses it'));
    });
  } finally {
    database.close();
  }
}

function opened() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}
