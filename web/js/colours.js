// Colours of the style sheet, for drawings on a canvas.

/**
 * @param {string} name of a custom property
 * @param {HTMLElement} element where it is looked up: in the light or the dark scheme of that place
 * @returns {string} "rgb(10, 110, 98)"
 */
export function colourOf(name, element = document.documentElement) {
  const own = element.style.color;
  element.style.color = `var(${name})`;
  const found = getComputedStyle(element).color;
  element.style.color = own;
  return found;
}
