// Where the browser keeps programs. Each has a place of its own, so that none takes the place of another: the reader's own
// is '', an example's is the name of its file, a link's is its fragment. Of examples and links only what was changed is kept.

import { load, remove, save } from './storage.js';

const OWN = 'tensorgrad.program';
const USED = 'tensorgrad.programs'; // the places, the last used at the end
const MOST = 20; // changed examples and links; the own one is none of them

/** @returns {string} the name under which the browser's storage has the program of a place */
export const keyOf = (place) => (place ? `${OWN} ${place}` : OWN);

/** @returns {string | null} */
export const kept = (place) => load(keyOf(place));

export function keep(place, text) {
  save(keyOf(place), text);
  use(place);
}

export function forget(place) {
  remove(keyOf(place));
  list(used().filter((one) => one !== place));
}

/** The place that the next visit begins with. */
export const last = () => used().at(-1) ?? '';

export function use(place) {
  if (place === last()) return;
  const places = [...used().filter((one) => one !== place), place];
  const others = places.filter((one) => one); // whatever is dropped, the reader's own is not
  for (const old of others.slice(0, -MOST)) forget(old);
  list(places.filter((one) => !one || others.slice(-MOST).includes(one)));
}

function used() {
  try {
    const found = JSON.parse(load(USED) ?? '[]');
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function list(places) {
  save(USED, JSON.stringify(places));
}
