/** A flame view: time from left to right, what called it above. Each bar is a button that zooms. */

import { useState } from "preact/hooks";

import type { Branch } from "./api.ts";
import { count, duration, percent } from "./words.ts";

interface Bar {
  branch: Branch;
  path: readonly Branch[];
  depth: number;
  left: number;
  width: number;
}

const LEAST = 0.003;
const HEIGHT = 24;

function bars(branch: Branch, path: readonly Branch[], left: number, width: number, depth: number): Bar[] {
  const found: Bar[] = [{ branch, path, depth, left, width }];
  let from = left;
  for (const part of branch.below) {
    const wide = branch.ns ? (width * part.ns) / branch.ns : 0;
    if (wide >= LEAST) found.push(...bars(part, [...path, part], from, wide, depth + 1));
    from += wide;
  }
  return found;
}

export function Flame({ root }: { root: Branch }) {
  const [path, setPath] = useState<readonly Branch[]>([root]);
  const top = path.at(-1)!;
  const drawn = bars(top, path, 0, 1, 0);
  const depth = Math.max(...drawn.map((bar) => bar.depth)) + 1;
  const of = (branch: Branch) =>
    `${branch.name}: ${duration(branch.ns / 1e9)}, ${percent(root.ns ? branch.ns / root.ns : 0)}, ${count(branch.count)} times`;
  const leaves = (branch: Branch): Branch[] => (branch.below.length ? branch.below.flatMap(leaves) : [branch]);
  const totals = new Map<string, { ns: number; count: number }>();
  for (const leaf of leaves(root)) {
    const old = totals.get(leaf.name) ?? { ns: 0, count: 0 };
    totals.set(leaf.name, { ns: old.ns + leaf.ns, count: old.count + leaf.count });
  }
  const longest = [...totals].sort((a, b) => b[1].ns - a[1].ns).slice(0, 10);
  return (
    <div class="flame">
      <nav aria-label="Shown part of the profile" class="crumbs">
        {path.map((branch, i) => (
          <button key={i} type="button" class="quiet" onClick={() => setPath(path.slice(0, i + 1))}>
            {branch.name}
          </button>
        ))}
      </nav>
      <svg viewBox={`0 0 1000 ${depth * HEIGHT}`} width="100%" height={depth * HEIGHT} preserveAspectRatio="none">
        <title>Flame view of {top.name}</title>
        {drawn.map((bar, i) => (
          <g
            key={i}
            role="button"
            tabindex={0}
            aria-label={of(bar.branch)}
            onClick={() => setPath(bar.path)}
            onKeyDown={(event) => {
              if (event.key === "Enter" || event.key === " ") {
                event.preventDefault();
                setPath(bar.path);
              }
            }}
          >
            <title>{of(bar.branch)}</title>
            <rect
              class={`hue${[...bar.branch.name].reduce((a, c) => a + c.charCodeAt(0), 0) % 6}`}
              x={bar.left * 1000 + 0.5}
              y={bar.depth * HEIGHT}
              width={Math.max(1, bar.width * 1000 - 1)}
              height={HEIGHT - 2}
              rx="2"
            />
          </g>
        ))}
      </svg>
      <div class="labels" aria-hidden="true">
        <svg width="100%" height={depth * HEIGHT}>
          {drawn
            .filter((bar) => bar.width > 0.04)
            .map((bar, i) => (
              <svg
                key={i}
                x={`${bar.left * 100}%`}
                y={bar.depth * HEIGHT}
                width={`${bar.width * 100}%`}
                height={HEIGHT}
              >
                <text x="6" y="15">
                  {bar.branch.name}
                </text>
              </svg>
            ))}
        </svg>
      </div>
      <table>
        <caption>The longest ops and nodes of backward</caption>
        <thead>
          <tr>
            <th scope="col">Op</th>
            <th scope="col" class="number">
              Time
            </th>
            <th scope="col" class="number">
              Part
            </th>
            <th scope="col" class="number">
              Times
            </th>
          </tr>
        </thead>
        <tbody>
          {longest.map(([name, total]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{duration(total.ns / 1e9)}</td>
              <td class="number">{percent(root.ns ? total.ns / root.ns : 0)}</td>
              <td class="number">{count(total.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
