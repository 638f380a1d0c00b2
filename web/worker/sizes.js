// Bytes of what is loaded, by the start of the file's name; the build writes them here. A server that compresses tells only
// how much it sends, and a list that comes with the site needs no request.
export const SIZES = {};
