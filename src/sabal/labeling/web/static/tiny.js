// Very small pictures are drawn large and sharp, pixel by pixel.

const TINY = 96;

/** Mark an image as tiny once its size is known. */
export function markTiny(image) {
  const mark = () =>
    image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= TINY);
  if (image.complete && image.naturalWidth) mark();
  else image.addEventListener("load", mark);
}
