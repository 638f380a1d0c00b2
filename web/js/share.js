// A program as the fragment of an address: compressed, never sent to a server.

const NAME = 'code=';
const MOST = 200_000; // bytes of a program; a link must not unpack to gigabytes

/** @returns {Promise<string>} the address of this page, or of another playground, with the program in it */
export async function linkTo(program, page = location.href) {
  const packed = await read(stream(new TextEncoder().encode(program), new CompressionStream('deflate-raw')), Infinity);
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join('');
  const url = new URL(page);
  url.hash = NAME + btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return url.href;
}

/** Whether an address's fragment holds a program. */
export const isLink = (hash) => hash.startsWith(`#${NAME}`);

/** @returns {Promise<string>} the program in an address's fragment; rejects where it is damaged */
export async function programIn(hash) {
  const binary = atob(hash.slice(NAME.length + 1).replaceAll('-', '+').replaceAll('_', '/'));
  const packed = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const bytes = await read(stream(packed, new DecompressionStream('deflate-raw')), MOST);
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

function stream(bytes, transform) {
  return new Blob([bytes]).stream().pipeThrough(transform);
}

async function read(readable, most) {
  const chunks = [];
  let size = 0;
  const reader = readable.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(chunks).arrayBuffer());
    size += value.length;
    if (size > most) throw new RangeError('the program is too long');
    chunks.push(value);
  }
}
