// A figure as a PNG, twice as large as it is drawn: the exported SVG, painted by the browser.
const kTimes = 2;
const kMostSide = 16_384;  // of a canvas, in the browsers that paint it

async function decoded(svg: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  return image;
}

// Undefined: it is larger than a browser can paint.
export async function pngOf(svg: string): Promise<Blob | undefined> {
  const image = await decoded(svg);
  const fits = kTimes * image.naturalWidth <= kMostSide && kTimes * image.naturalHeight <= kMostSide;
  const times = fits ? kTimes : 1;
  const canvas = document.createElement('canvas');
  canvas.width = times * image.naturalWidth;
  canvas.height = times * image.naturalHeight;
  const context = canvas.getContext('2d');
  if (!context) return undefined;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob((blob) => done(blob ?? undefined), 'image/png'); });
}
