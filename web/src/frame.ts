// Once the frame that is being made is handed over; a page that is not seen has none.
export function afterFrame(then: () => void): void {
  if (document.hidden) setTimeout(then);
  else requestAnimationFrame(() => { setTimeout(then); });
}
