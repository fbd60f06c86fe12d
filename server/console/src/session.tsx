/** One session: its numbers, last frames, tensors, graph, a profile, its log, and what can be done to it. */

import { useEffect, useState } from "preact/hooks";

import { ask, at, tensorsOf } from "./api.ts";
import type { Branch, RecentFrame, SessionRow, TensorRow } from "./api.ts";
import { Flame } from "./flame.tsx";
import type { Live } from "./live.ts";
import { Figure, Scroll, State } from "./parts.tsx";
import type { Question } from "./parts.tsx";
import { age, bytes, clock, count, duration, percent, plural, rate, sizeOf } from "./words.ts";

const PROFILE_S = 5;
const TENSORS_SHOWN = 50;
const DRAWN_AT_MOST = 500;

interface Props {
  id: string;
  live: Live;
  dark: boolean;
  may: (scope: string) => boolean;
  say: (text: string) => void;
  confirm: (question: Question) => void;
}

export function SessionPage(props: Props) {
  const { id, live, may, say, confirm } = props;
  const { activity, history } = live;
  const row = activity?.sessions.find((each) => each.id === id);
  if (!row) {
    const over = live.connection === "ended" || activity !== undefined;
    return (
      <>
        <h1>Session</h1>
        <p class="empty">{over ? `Session ${id} has ended, or is not yours.` : "Waiting for the first numbers…"}</p>
        <a href="#/">All sessions</a>
      </>
    );
  }
  const act = (work: () => Promise<string>) =>
    work().then(say, (error: unknown) => say(`That failed: ${error instanceof Error ? error.message : String(error)}`));
  const path = `v1/sessions/${id}`;
  const cancel = () =>
    act(async () => {
      const { frames } = await ask<{ frames: number }>("DELETE", `${path}/frames`);
      return frames ? `${plural(frames, "frame")} cancelled.` : "No frame was queued or running.";
    });
  const end = () =>
    confirm({
      title: "End this session?",
      text: `${row.name || row.id} loses its tensors and its graph, and its programs get an error. Export it first to keep the tensors.`,
      action: "End session",
      run: () =>
        void act(async () => {
          await ask("DELETE", path);
          location.hash = "#/";
          return "The session has ended.";
        }),
    });
  return (
    <>
      <nav aria-label="Breadcrumb" class="crumbs">
        <a href="#/">What runs</a> <span aria-hidden="true">/</span> <span class="id">{row.id}</span>
      </nav>
      <div class="head">
        <h1>
          {row.name || row.id} <State state={row.state} />
        </h1>
        <div class="buttons">
          {may("session") && (
            <button type="button" onClick={() => void cancel()}>
              Cancel frames
            </button>
          )}
          {may("read") && (
            <a class="button" href={at(`${path}/export`)} download={`${id}.safetensors`}>
              Export
            </a>
          )}
          {may("session") && (
            <button type="button" class="danger" onClick={end}>
              End session
            </button>
          )}
        </div>
      </div>
      <Figures row={row} history={history} />
      <Frames frames={activity?.detail?.frames ?? []} />
      {may("read") && <Tensors id={id} dormant={row.state === "dormant"} />}
      {may("read") && <Graph id={id} dark={props.dark} />}
      {may("session") && <Profile id={id} say={say} />}
      <Log lines={activity?.detail?.log ?? []} />
    </>
  );
}

function Figures({ row, history }: { row: SessionRow; history: Live["history"] }) {
  const { memory, last_error: error } = row;
  return (
    <>
      <dl class="figures">
        <Figure
          label="Frames a second"
          value={rate(row.frames_per_second)}
          note={`${count(row.frames)} in all, ${row.pending_frames} pending`}
          history={history["frames"] ?? []}
        />
        <Figure
          label="Ops a second"
          value={rate(row.ops_per_second)}
          note={`${count(row.ops)} in all`}
          history={history["ops"] ?? []}
        />
        <Figure
          label="Computing"
          value={percent(row.busy)}
          note={row.frames ? `${percent(row.planned_frames / row.frames)} of frames by plan` : "no frames yet"}
          history={history["busy"] ?? []}
        />
        <Figure
          label="Memory live"
          value={memory ? bytes(memory.live_bytes) : "–"}
          note={memory ? `peak ${bytes(memory.peak_bytes)}, limit ${bytes(memory.limit_bytes)}` : "not loaded"}
          history={history["live"] ?? []}
        />
        <Figure
          label="For backward"
          value={memory ? bytes(memory.saved_bytes) : "–"}
          note={memory ? `${bytes(memory.pooled_bytes)} pooled` : ""}
          history={history["saved"] ?? []}
        />
      </dl>
      <dl class="facts">
        <Fact name="Owner" value={row.tenant} />
        <Fact name="Device" value={row.device} />
        <Fact name="Durability" value={row.durability} />
        <Fact name="Age" value={age(row.age_s)} />
        <Fact name="Idle" value={row.state === "busy" ? "–" : age(row.idle_s)} />
        <Fact name="Expires in" value={row.streams ? "while connected, never" : age(row.expires_in_s)} />
        <Fact name="Streams" value={String(row.streams)} />
        <Fact name="Errors" value={count(row.errors)} />
      </dl>
      {error && (
        <p class="problem">
          <strong>Last error, {clock(error.at)}:</strong> {error.code}
          {error.op && ` in ${error.op}`}
          {error.detail && `: ${error.detail}`}
        </p>
      )}
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Frames({ frames }: { frames: readonly RecentFrame[] }) {
  const [held, setHeld] = useState<readonly RecentFrame[] | undefined>(undefined);
  const shown = (held ?? frames).slice(0, 12);
  return (
    <section aria-labelledby="frames">
      <div class="head">
        <h2 id="frames">Last frames</h2>
        <button type="button" class="quiet" aria-pressed={!!held} onClick={() => setHeld(held ? undefined : frames)}>
          {held ? "Follow again" : "Hold"}
        </button>
      </div>
      {shown.length === 0 ? (
        <p class="empty">No frames since the server started.</p>
      ) : (
        <Scroll label="Last frames">
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col" class="number">
                  Frame
                </th>
                <th scope="col">Ops</th>
                <th scope="col" class="number">
                  Count
                </th>
                <th scope="col" class="number">
                  Duration
                </th>
                <th scope="col" class="number">
                  Waited
                </th>
                <th scope="col">Way</th>
                <th scope="col">Error</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((frame, i) => (
                <tr key={i}>
                  <td>{clock(frame.at)}</td>
                  <td class="number">{frame.seq}</td>
                  <td class="ops">{frame.what || "–"}</td>
                  <td class="number">{count(frame.ops)}</td>
                  <td class="number">{duration(frame.took_s)}</td>
                  <td class="number">{duration(frame.waited_s)}</td>
                  <td>{frame.planned ? "plan" : "tape"}</td>
                  <td class="error">{frame.error}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

function Tensors({ id, dormant }: { id: string; dormant: boolean }) {
  const [held, setHeld] = useState<{ rows: TensorRow[]; more: boolean } | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const [wanted, setWanted] = useState("");
  const load = () => {
    setProblem("");
    tensorsOf(id).then(setHeld, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  useEffect(() => {
    if (!dormant) load();
  }, [id]);
  const needle = wanted.trim().toLowerCase();
  const rows = (held?.rows ?? [])
    .filter((row) => !needle || `${row.id} ${row.name ?? ""} ${row.dtype}`.toLowerCase().includes(needle))
    .map((row) => ({ ...row, size: sizeOf(row.shape, row.dtype) }))
    .sort((a, b) => b.size - a.size);
  return (
    <section aria-labelledby="tensors">
      <div class="head">
        <h2 id="tensors">Tensors by size</h2>
        <label class="filter">
          <span>Filter</span>
          <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </label>
        <button type="button" class="quiet" onClick={load}>
          {held ? "Read again" : "Read"}
        </button>
      </div>
      {problem && <p class="problem">{problem}</p>}
      {dormant && !held && <p class="empty">The session is on disk. Reading its tensors loads it.</p>}
      {held && rows.length === 0 && <p class="empty">No tensors.</p>}
      {rows.length > 0 && (
        <>
          <Scroll label="Tensors">
            <table class="rows">
              <thead>
                <tr>
                  <th scope="col">Tensor</th>
                  <th scope="col" class="number">
                    Size
                  </th>
                  <th scope="col">Shape</th>
                  <th scope="col">Dtype</th>
                  <th scope="col">Device</th>
                  <th scope="col">Gradient</th>
                </tr>
              </thead>
              <tbody>
                {rows.slice(0, TENSORS_SHOWN).map((row) => (
                  <tr key={row.id ?? row.name}>
                    <th scope="row">
                      {row.name ?? `#${row.id}`}
                      {row.name && row.id && <small>#{row.id}</small>}
                    </th>
                    <td class="number">{bytes(row.size)}</td>
                    <td class="id">[{row.shape.join(", ")}]</td>
                    <td>{row.dtype}</td>
                    <td>{row.device}</td>
                    <td>{row.grad_fn ?? (row.requires_grad ? "leaf" : "–")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
          <p class="note">
            {count(Math.min(rows.length, TENSORS_SHOWN))} of {count(rows.length)}
            {held?.more && "+"} tensors, {bytes(rows.reduce((sum, row) => sum + row.size, 0))} of elements; views share
            memory.
          </p>
        </>
      )}
    </section>
  );
}

function Graph({ id, dark }: { id: string; dark: boolean }) {
  const [drawn, setDrawn] = useState(0);
  const [problem, setProblem] = useState("");
  const path = `v1/sessions/${id}/graph`;
  const source = at(`${path}?format=svg&theme=${dark ? "dark" : "light"}&drawing=${drawn}`);
  const draw = async () => {
    setDrawn(0);
    try {
      const { nodes } = await ask<{ nodes: unknown[] }>("GET", `${path}?format=json`);
      if (nodes.length === 0) setProblem("No tensor of a program has a graph now.");
      else if (nodes.length > DRAWN_AT_MOST)
        setProblem(`The graph has ${count(nodes.length)} nodes, too many to draw.`);
      else {
        setProblem("");
        setDrawn(Date.now());
      }
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <section aria-labelledby="graph">
      <div class="head">
        <h2 id="graph">Autograd graph</h2>
        <button type="button" class="quiet" onClick={() => void draw()}>
          {drawn ? "Draw again" : "Draw"}
        </button>
        {drawn > 0 && (
          <a href={source} target="_blank" rel="noopener">
            Open alone
          </a>
        )}
      </div>
      {problem && <p class="problem">{problem}</p>}
      {!drawn && !problem && <p class="empty">The drawing is made between two frames of the session.</p>}
      {drawn > 0 && (
        <Scroll label="Drawing of the graph">
          <img
            class="graph"
            src={source}
            alt="Drawing of the live autograd graph: results above, leaves below"
            onError={() => setProblem("The graph has changed meanwhile and cannot be drawn; try again.")}
          />
        </Scroll>
      )}
    </section>
  );
}

function Profile({ id, say }: { id: string; say: (text: string) => void }) {
  const [flame, setFlame] = useState<Branch | undefined>(undefined);
  const [recording, setRecording] = useState(false);
  const [made, setMade] = useState(0);
  const record = async () => {
    setRecording(true);
    say(`Recording for ${PROFILE_S} seconds.`);
    try {
      const found = await ask<{ flame: Branch }>("POST", `v1/sessions/${id}/profile`, { seconds: PROFILE_S });
      setFlame(found.flame);
      setMade(made + 1);
      say(found.flame.count ? `Recorded ${found.flame.count} frames.` : "No frame ran meanwhile.");
    } catch (error) {
      say(`That failed: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      setRecording(false);
    }
  };
  return (
    <section aria-labelledby="profile">
      <div class="head">
        <h2 id="profile">Profile</h2>
        <button type="button" class="quiet" disabled={recording} onClick={() => void record()}>
          {recording ? "Recording…" : `Record ${PROFILE_S} s`}
        </button>
      </div>
      {!flame && <p class="empty">While it records, frames run op by op, which is slower and gives the same values.</p>}
      {flame && flame.count === 0 && <p class="empty">No frame ran while it recorded.</p>}
      {flame && flame.count > 0 && <Flame key={made} root={flame} />}
    </section>
  );
}

function Log({ lines }: { lines: readonly import("./api.ts").LogLine[] }) {
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      {lines.length === 0 ? (
        <p class="empty">The server has logged nothing about this session, at its level of logging.</p>
      ) : (
        <Scroll label="Log">
          <ol class="log">
            {lines.map((line, i) => (
              <li key={i} class={line.level}>
                <time>{clock(line.at)}</time> <b>{line.level}</b> {line.event}{" "}
                <span class="muted">
                  {Object.entries(line.facts)
                    .map(([name, value]) => `${name}=${String(value)}`)
                    .join(" ")}
                </span>
              </li>
            ))}
          </ol>
        </Scroll>
      )}
    </section>
  );
}
