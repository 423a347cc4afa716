// A file's bytes as text that JSON can carry.
export function asBase64(file: Blob): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => failed(reader.error ?? new Error('it cannot be read'));
    reader.readAsDataURL(file);
  });
}
