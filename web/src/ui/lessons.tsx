import {lessons} from '../lessons';
import {caseName, go} from '../store';

export function Lessons() {
  return (
    <nav aria-label="Lessons">
      <details>
        <summary data-testid="lessons">Lessons and cases</summary>
        {lessons().map(({title, cases}) => (
          <div key={title}>
            <h2>{title}</h2>
            <ul class="plain">
              {cases.map((name) => (
                <li key={name}>
                  <a href={`#/learn/${name}?v=1`} data-testid={`case-${name}`}
                    aria-current={caseName.value === name ? 'page' : undefined}
                    onClick={(event) => {
                      event.preventDefault();
                      event.currentTarget.closest('details')?.removeAttribute('open');
                      go(`#/learn/${name}?v=1`);
                    }}>{name}</a>
                </li>))}
            </ul>
          </div>))}
      </details>
    </nav>
  );
}
