// Ways to the other pages, and a page that is fetched when it is opened.
import {useSignal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';

import {hasEmbeddedModule} from '../embedded';
import {loadDoctor, loadSheet, type Load} from '../pages';
import {go, page} from '../store';

const kPages = [['learn', 'Learn'], ['sheet', 'Sheet'], ['doctor', 'Doctor']] as const;

export function PageLinks() {
  if (!loadDoctor || !loadSheet || hasEmbeddedModule()) return null;
  return (
    <nav aria-label="Pages" class="pages">
      {kPages.map(([name, title]) => (
        <a key={name} href={`#/${name}`} data-testid={`page-${name}`} aria-current={page.value === name ? 'page' : undefined}
          onClick={(event) => {
            event.preventDefault();
            go(`#/${name}`);
          }}>{title}</a>))}
    </nav>
  );
}

// What is fetched when it is opened.
export function Opened({name, title, load, isMenu = false}: {
  name: string; title: string; load: Load; isMenu?: boolean;
}) {
  const wasOpened = useSignal(false);
  return (
    <details class={isMenu ? 'menu' : undefined} onToggle={(event) => { wasOpened.value ||= event.currentTarget.open; }}>
      <summary data-testid={name}>{title}</summary>
      {wasOpened.value && <Later load={load} />}
    </details>
  );
}

export function Later({load}: {load: Load | undefined}) {
  const loaded = useSignal<{Page: ComponentType} | undefined>(undefined);
  const trouble = useSignal('');
  useEffect(() => {
    load?.().then((module) => { loaded.value = {Page: module.default}; }, (error: unknown) => { trouble.value = String(error); });
  }, [load]);
  if (loaded.value) return <loaded.value.Page />;
  if (trouble.value === '') return <p class="soft" data-testid="page-loading">Loading …</p>;
  return (
    <p role="alert" class="banner bad" data-testid="banner-error" data-code="page-not-loaded">
      This part of the page could not be loaded: {trouble.value}. Reload; your edits are in the address and are kept.
    </p>
  );
}
