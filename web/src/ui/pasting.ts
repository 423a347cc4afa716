// A block of a spreadsheet pasted onto a cell of an input, where a page takes such blocks.
import {signal} from '@preact/signals';

export type TakeBlock = (place: string, text: string) => void;
export const takeBlock = signal<TakeBlock | undefined>(undefined);

export function onPaste(event: ClipboardEvent): void {
  const target = event.target as HTMLElement;
  const place = target.closest<HTMLTableCellElement>('td[data-place]')?.dataset['place'];
  const text = event.clipboardData?.getData('text/plain') ?? '';
  // One number goes into the cell that is being typed in.
  const isTyped = target.closest('input') !== null && !/[\t\n;[]/.test(text.trim());
  if (place === undefined || isTyped || text.trim() === '' || !takeBlock.peek()) return;
  event.preventDefault();
  takeBlock.peek()!(place, text);
}
