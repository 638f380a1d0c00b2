// What this browser keeps; where it keeps nothing (a private window, a full disk), the page does without.

export function load(key) {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** What `save` was given as JSON of an object; an empty one where there is none. */
export function loadObject(key) {
  try {
    return { ...JSON.parse(load(key)) };
  } catch {
    return {};
  }
}

export function save(key, text) {
  try {
    window.localStorage.setItem(key, text);
  } catch {
    // It then lasts as long as the page.
  }
}

export function remove(key) {
  try {
    window.localStorage.removeItem(key);
  } catch {
    // Then it was not kept either.
  }
}
