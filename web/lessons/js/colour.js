// Colours of the style sheet as numbers, for pictures made of pixels.

import { colourOf } from '../../js/colours.js';

const probe = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });

/** @param {string} name of a custom property @returns {number[]} red, green, blue and opacity, 0 to 255 */
export function colour(name) {
  probe.fillStyle = colourOf(name);
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data];
}

/** Colours from one to another. @returns {number[][]} */
export function ramp(from, to, count) {
  return Array.from({ length: count }, (_, i) => from.map((value, c) => Math.round(value + ((to[c] - value) * i) / (count - 1))));
}

/** 255 colours, from the one of −1 (orange) by the panel's to the one of 1 (green). */
export function diverging() {
  const [low, middle, high] = ['--curve-2', '--panel', '--curve-1'].map(colour);
  return [...ramp(low, middle, 128), ...ramp(middle, high, 128).slice(1)];
}

/** Calls back when light changes to dark or the other way. */
export function onScheme(action) {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', action);
}
