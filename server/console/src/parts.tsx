/** Small parts of the pages. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** How many seconds a chart shows. */
export const CHART_S = 60;

/** A number that changes, with its last minute. */
export function Figure(props: { label: string; value: string; note?: string; history?: readonly number[] }) {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd>
        <span class="value">{props.value}</span>
        {props.note && <span class="note">{props.note}</span>}
        {props.history && <Chart values={props.history} />}
      </dd>
    </div>
  );
}

/** A line of the last minute, without axes. The number beside it says the same. */
export function Chart({ values }: { values: readonly number[] }) {
  const most = Math.max(...values, 1e-9);
  const x = (i: number) => 120 - ((values.length - 1 - i) * 120) / (CHART_S - 1);
  const line = values.map((value, i) => `${x(i).toFixed(1)} ${(25 - (22 * value) / most).toFixed(1)}`).join(" L");
  return (
    <svg class="chart" viewBox="0 0 120 27" preserveAspectRatio="none" aria-hidden="true">
      {values.length > 1 && <path class="area" d={`M${x(0).toFixed(1)} 27 L${line} L120 27 Z`} />}
      {values.length > 1 && <path class="line" d={`M${line}`} />}
    </svg>
  );
}

/** How much of a limit is used. */
export function Meter(props: { used: number; limit: number; label: string }) {
  const part = props.limit > 0 ? Math.min(1, props.used / props.limit) : 0;
  const tone = part > 0.9 ? "meter high" : "meter";
  return (
    <svg class={tone} viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <rect class="track" width="100" height="6" />
      <rect class="fill" width={(100 * part).toFixed(1)} height="6" />
    </svg>
  );
}

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${state}`}>
      <svg viewBox="0 0 10 10" aria-hidden="true">
        {state === "busy" ? <path d="M1 1l8 4-8 4z" /> : <circle cx="5" cy="5" r="3.6" />}
      </svg>
      {state}
    </span>
  );
}

/** A table that scrolls sideways on narrow screens; reachable by keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={`Table: ${label}`} tabIndex={0}>
      {children}
    </div>
  );
}

export interface Question {
  title: string;
  text: string;
  action: string;
  run: () => void;
}

/** Asks before something that cannot be undone. */
export function Confirm({ question, close }: { question: Question; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={close}>
      <h2 id="question">{question.title}</h2>
      <p>{question.text}</p>
      <div class="buttons">
        <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
          Keep
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            question.run();
            dialog.current?.close();
          }}
        >
          {question.action}
        </button>
      </div>
    </dialog>
  );
}
