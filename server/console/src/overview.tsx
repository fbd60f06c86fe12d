/** What runs: sessions, the queue, workers, devices, and rates against quotas. */

import { useState } from "preact/hooks";

import type { Quota, SessionRow } from "./api.ts";
import type { Live } from "./live.ts";
import { Figure, Meter, Scroll, State } from "./parts.tsx";
import { age, bytes, count, duration, percent, plural, rate } from "./words.ts";

type Column = { key: string; label: string; number?: boolean; of: (row: SessionRow) => number | string };

const COLUMNS: readonly Column[] = [
  { key: "name", label: "Session", of: (row) => row.name || row.id },
  { key: "state", label: "State", of: (row) => row.state },
  { key: "tenant", label: "Owner", of: (row) => row.tenant },
  { key: "age", label: "Age", number: true, of: (row) => row.age_s },
  { key: "idle", label: "Idle", number: true, of: (row) => row.idle_s },
  { key: "live", label: "Live", number: true, of: (row) => row.memory?.live_bytes ?? -1 },
  { key: "saved", label: "For backward", number: true, of: (row) => row.memory?.saved_bytes ?? -1 },
  { key: "pooled", label: "Pooled", number: true, of: (row) => row.memory?.pooled_bytes ?? -1 },
  { key: "frames", label: "Frames/s", number: true, of: (row) => row.frames_per_second },
  { key: "ops", label: "Ops/s", number: true, of: (row) => row.ops_per_second },
  { key: "plans", label: "By plan", number: true, of: (row) => planned(row) },
  { key: "error", label: "Last error", of: (row) => row.last_error?.at ?? "" },
];
const SHOWN = 100;

const planned = (row: SessionRow): number => (row.frames ? row.planned_frames / row.frames : -1);

const QUOTAS: { readonly [name: string]: string } = {
  max_ops_per_second: "Ops per second",
  max_bytes_per_second: "Bytes per second",
  max_requests_per_second: "Requests per second",
  max_key_sessions: "Sessions",
  max_key_bytes: "Memory of sessions",
};

export function Overview({ live }: { live: Live }) {
  const [sort, setSort] = useState({ key: "frames", down: true });
  const [wanted, setWanted] = useState("");
  const [most, setMost] = useState(SHOWN);
  const { activity, history } = live;
  if (!activity) return <p class="empty">Waiting for the first numbers…</p>;
  const { totals, queue, devices, workers, quotas, caller } = activity;
  const column = COLUMNS.find((each) => each.key === sort.key)!;
  const needle = wanted.trim().toLowerCase();
  const found = activity.sessions.filter(
    (row) => !needle || `${row.id} ${row.name} ${row.tenant} ${row.state}`.toLowerCase().includes(needle),
  );
  const sign = sort.down ? -1 : 1;
  const rows = found.sort((a, b) => {
    const [x, y] = [column.of(a), column.of(b)];
    return x === y ? a.created_at.localeCompare(b.created_at) : x < y ? -sign : sign;
  });
  return (
    <>
      <h1>What runs</h1>
      <dl class="figures">
        <Figure
          label="Sessions"
          value={count(totals.sessions)}
          note={`${count(totals.busy)} busy, ${count(totals.loaded)} loaded`}
        />
        <Figure label="Frames a second" value={rate(totals.frames_per_second)} history={history["frames"] ?? []} />
        <Figure label="Ops a second" value={rate(totals.ops_per_second)} history={history["ops"] ?? []} />
        <Figure
          label="Memory live"
          value={bytes(totals.live_bytes)}
          note={`${bytes(totals.saved_bytes)} for backward, ${bytes(totals.pooled_bytes)} pooled`}
          history={history["live"] ?? []}
        />
        <Figure
          label="Queue"
          value={plural(queue.pending_frames, "frame")}
          note={
            queue.slots === null
              ? `${plural(queue.computing, "session")} computing`
              : `${queue.computing} of ${queue.slots} slots taken, ${queue.waiting} waiting`
          }
          history={history["queue"] ?? []}
        />
      </dl>

      <section aria-labelledby="sessions">
        <div class="head">
          <h2 id="sessions">Sessions</h2>
          <label class="filter">
            <span>Filter</span>
            <input
              type="search"
              value={wanted}
              placeholder="id, name, owner or state"
              onInput={(event) => setWanted(event.currentTarget.value)}
            />
          </label>
        </div>
        {rows.length === 0 ? (
          <p class="empty">{activity.sessions.length ? "No session fits the filter." : "No sessions yet."}</p>
        ) : (
          <Scroll label="Sessions">
            <table class="rows">
              <thead>
                <tr>
                  {COLUMNS.map((each) => (
                    <th
                      key={each.key}
                      scope="col"
                      class={each.number ? "number" : ""}
                      aria-sort={sort.key === each.key ? (sort.down ? "descending" : "ascending") : "none"}
                    >
                      <button
                        type="button"
                        onClick={() =>
                          setSort({ key: each.key, down: sort.key === each.key ? !sort.down : !!each.number })
                        }
                      >
                        {each.label}
                        <span aria-hidden="true">{sort.key === each.key ? (sort.down ? " ↓" : " ↑") : ""}</span>
                      </button>
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.slice(0, most).map((row) => (
                  <Row key={row.id} row={row} own={row.tenant === caller.tenant} />
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
        {rows.length > most && (
          <button type="button" class="quiet" onClick={() => setMost(most + SHOWN)}>
            Show more ({count(rows.length - most)} not shown)
          </button>
        )}
      </section>

      <div class="columns">
        <section aria-labelledby="devices">
          <h2 id="devices">Devices</h2>
          <ul class="cards">
            {devices.map((each) => (
              <li key={each.name}>
                <strong>{each.name}</strong> <span class="muted">{each.model}</span>
                <Meter
                  used={each.total_bytes - each.free_bytes}
                  limit={each.total_bytes}
                  label={`memory of ${each.name} in use`}
                />
                <span>
                  {bytes(each.total_bytes - each.free_bytes)} of {bytes(each.total_bytes)} in use
                </span>
              </li>
            ))}
          </ul>
        </section>
        <section aria-labelledby="workers">
          <h2 id="workers">Workers</h2>
          {workers.length === 0 ? (
            <p class="empty">Sessions run in the server's own process, {duration(activity.uptime_s)} old.</p>
          ) : (
            <ul class="cards">
              {workers.map((each) => (
                <li key={each.id}>
                  <strong>process {each.id}</strong> <State state={each.state} />
                  <span>
                    {plural(each.sessions, "session")}, {plural(each.calls, "open call")}
                  </span>
                </li>
              ))}
            </ul>
          )}
        </section>
      </div>
      <section aria-labelledby="quotas">
        <h2 id="quotas">Rates and quotas</h2>
        {quotas.length === 0 ? (
          <p class="empty">No limits are set for {caller.all ? "any key" : "this key"}.</p>
        ) : (
          <ul class="cards wide">
            {quotas.slice(0, 12).map((each) => (
              <QuotaCard key={each.key + each.quota} quota={each} named={caller.all} />
            ))}
            {quotas.length > 12 && <li class="muted">and {count(quotas.length - 12)} more that are used less</li>}
          </ul>
        )}
      </section>
    </>
  );
}

function Row({ row, own }: { row: SessionRow; own: boolean }) {
  const error = row.last_error;
  const label = row.name || row.id;
  return (
    <tr>
      <th scope="row">
        {own ? <a href={`#/sessions/${row.id}`}>{label}</a> : label}
        {row.name && <small>{row.id}</small>}
      </th>
      <td>
        <State state={row.state} />
      </td>
      <td class="id">{row.tenant}</td>
      <td class="number">{age(row.age_s)}</td>
      <td class="number">{row.state === "busy" ? "–" : age(row.idle_s)}</td>
      <td class="number">{row.memory ? bytes(row.memory.live_bytes) : "–"}</td>
      <td class="number">{row.memory ? bytes(row.memory.saved_bytes) : "–"}</td>
      <td class="number">{row.memory ? bytes(row.memory.pooled_bytes) : "–"}</td>
      <td class="number">{rate(row.frames_per_second)}</td>
      <td class="number">{rate(row.ops_per_second)}</td>
      <td class="number">{row.frames ? percent(planned(row)) : "–"}</td>
      <td class="error" title={error?.detail ?? ""}>
        {error ? `${error.code}${error.op ? ` in ${error.op}` : ""}` : ""}
      </td>
    </tr>
  );
}

function QuotaCard({ quota, named }: { quota: Quota; named: boolean }) {
  const memory = quota.quota.includes("bytes");
  const spell = memory ? bytes : (value: number) => count(Math.round(value));
  const label = QUOTAS[quota.quota] ?? quota.quota;
  return (
    <li>
      <strong>{label}</strong> {named && <span class="muted">{quota.name || quota.key}</span>}
      <Meter used={quota.used} limit={quota.limit} label={`${label} in use`} />
      <span>
        {spell(quota.used)} of {spell(quota.limit)}
      </span>
    </li>
  );
}
