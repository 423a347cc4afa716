// A file for the reader to keep.
export function save(bytes: BlobPart, name: string, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes], {type}));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
