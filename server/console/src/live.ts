/** The stream of what the server does, and its last minute. */

import { useEffect, useState } from "preact/hooks";

import { at } from "./api.ts";
import type { Activity } from "./api.ts";
import { CHART_S } from "./parts.tsx";

export type Connection = "connecting" | "live" | "lost" | "ended";

export interface Live {
  activity: Activity | undefined;
  connection: Connection;
  /** Why the stream ended. */
  reason: string;
  /** The values of the last minute, by name. */
  history: { readonly [name: string]: readonly number[] };
}

const FIRST: Live = { activity: undefined, connection: "connecting", reason: "", history: {} };

function follow(history: Live["history"], activity: Activity, session: string | undefined): Live["history"] {
  const row = activity.sessions.find((each) => each.id === session);
  const source = session === undefined ? activity.totals : row;
  const memory = session === undefined ? activity.totals : row?.memory;
  const now: { [name: string]: number } = {
    frames: source?.frames_per_second ?? 0,
    ops: source?.ops_per_second ?? 0,
    live: memory?.live_bytes ?? 0,
    saved: memory?.saved_bytes ?? 0,
    busy: row?.busy ?? 0,
    queue: activity.queue.pending_frames,
  };
  const found: { [name: string]: readonly number[] } = {};
  for (const [name, value] of Object.entries(now)) found[name] = [...(history[name] ?? []), value].slice(-CHART_S);
  return found;
}

/** Follow the server, and one of its sessions in detail. `onEnd` gets why the stream ended for good. */
export function useLive(session: string | undefined, onEnd: () => void): Live {
  const [live, setLive] = useState<Live>(FIRST);
  useEffect(() => {
    setLive(FIRST);
    const query = session === undefined ? "" : `?session=${encodeURIComponent(session)}`;
    const source = new EventSource(at(`v1/activity/stream${query}`));
    source.addEventListener("message", (event: MessageEvent<string>) => {
      const activity = JSON.parse(event.data) as Activity;
      setLive((old) => ({
        activity,
        connection: "live",
        reason: "",
        history: follow(old.history, activity, session),
      }));
    });
    source.addEventListener("end", (event) => {
      source.close();
      setLive((old) => ({ ...old, connection: "ended", reason: (event as MessageEvent<string>).data }));
      onEnd();
    });
    source.addEventListener("error", () => {
      const over = source.readyState === EventSource.CLOSED;
      setLive((old) => ({ ...old, connection: over ? "ended" : "lost" }));
      if (over) onEnd();
    });
    return () => source.close();
  }, [session]);
  return live;
}
