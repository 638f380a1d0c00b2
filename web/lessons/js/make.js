// Elements from JavaScript.

/** @returns {HTMLElement} with its properties and children */
export function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** An element of a drawing, with its attributes. */
export function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

export const part = (id) => document.getElementById(id);
