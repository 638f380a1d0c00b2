// What Python has this browser keep, by `train.autosave` or `tg.browser.keep`: the page says so, and says it again at the
// next visit. It reads the list that `tensorgrad/browser.py` writes, and nothing else.

import { showSize } from './files.js';

const DATABASE = 'tensorgrad checkpoints';
const LIST = 'uses';

/** Before the names of what lessons keep, which they go on from by themselves. */
export const LESSON = 'lesson ';

export class Kept {
  constructor() {
    this._known = null; // names to sizes, of the last look
  }

  /** Looks, and puts what is new in words; at the first look that is all there is. @returns {Promise<string[]>} */
  async news() {
    const found = await list();
    const remarks = this._known === null ? remembered(found) : added(found, this._known);
    this._known = found;
    return remarks;
  }
}

function remembered(found) {
  if (!found.size) return [];
  const names = [...found].map(([name, size]) => `${JSON.stringify(name)} (${showSize(size)})`).join(', ');
  return [
    `This browser keeps ${names} from before. Where the model is the same, await train.resume(name) goes on from it; ` +
      'await tg.browser.forget(name) deletes it.',
  ];
}

function added(found, known) {
  return [...found]
    .filter(([name]) => !known.has(name))
    .map(([name, size]) => {
      const text = JSON.stringify(name);
      return `This browser now keeps ${text}, ${showSize(size)}, for your next visits. await tg.browser.forget(${text}) deletes it.`;
    });
}

/** @returns {Promise<Map<string, number>>} the bytes under each name; none where the browser keeps nothing */
function list() {
  return new Promise((resolve) => {
    const none = () => resolve(new Map());
    try {
      const opening = indexedDB.open(DATABASE);
      opening.onupgradeneeded = () => opening.transaction.abort(); // it is not there: nor does a look make it
      opening.onerror = none;
      opening.onsuccess = () => {
        const transaction = opening.result.transaction(LIST);
        const [names, uses] = [transaction.objectStore(LIST).getAllKeys(), transaction.objectStore(LIST).getAll()];
        transaction.oncomplete = () => {
          const all = names.result.map((name, i) => [name, uses.result[i][0]]);
          resolve(new Map(all.filter(([name]) => !name.startsWith(LESSON))));
        };
        transaction.onabort = none;
        opening.result.close(); // once that is done
      };
    } catch {
      none(); // a browser that keeps nothing
    }
  });
}
