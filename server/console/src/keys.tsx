/** The keys of the server, for administrators. */

import { useEffect, useState } from "preact/hooks";

import { ask } from "./api.ts";
import type { KeyRow } from "./api.ts";
import { Scroll } from "./parts.tsx";
import type { Question } from "./parts.tsx";

interface Props {
  mine: string;
  say: (text: string) => void;
  confirm: (question: Question) => void;
}

export function Keys({ mine, say, confirm }: Props) {
  const [rows, setRows] = useState<KeyRow[] | undefined>(undefined);
  const load = () =>
    ask<{ keys: KeyRow[] }>("GET", "v1/keys").then(
      (found) => setRows(found.keys),
      (error: unknown) => say(`The keys cannot be read: ${error instanceof Error ? error.message : String(error)}`),
    );
  useEffect(() => void load(), []);
  const revoke = (row: KeyRow) =>
    confirm({
      title: "Revoke this key?",
      text: `Programs with ${row.name || row.id} are disconnected at once${row.id === mine ? ", and you are signed out" : ""}. Sessions of its owner stay.`,
      action: "Revoke key",
      run: () =>
        void ask("DELETE", `v1/keys/${row.id}`).then(
          () => {
            say(`${row.name || row.id} is revoked.`);
            void load();
          },
          (error: unknown) => say(`That failed: ${error instanceof Error ? error.message : String(error)}`),
        ),
    });
  return (
    <>
      <h1>Keys</h1>
      {!rows ? (
        <p class="empty">Reading…</p>
      ) : (
        <Scroll label="Keys">
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Owner</th>
                <th scope="col">Scopes</th>
                <th scope="col">State</th>
                <th scope="col">Kept in</th>
                <th scope="col">Last use</th>
                <th scope="col">Action</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <th scope="row">
                    {row.name || row.id}
                    {row.name && <small>{row.id}</small>}
                  </th>
                  <td class="id">{row.tenant}</td>
                  <td>{row.scopes.join(", ")}</td>
                  <td>{row.state}</td>
                  <td>{row.kept}</td>
                  <td>{row.last_used_at ? new Date(row.last_used_at).toLocaleString("en-GB") : "–"}</td>
                  <td>
                    {row.state === "active" && row.kept !== "setting" ? (
                      <button
                        type="button"
                        class="danger"
                        aria-label={`Revoke ${row.name || row.id}`}
                        onClick={() => revoke(row)}
                      >
                        Revoke
                      </button>
                    ) : (
                      <span class="muted">{row.kept === "setting" ? "in the settings" : "–"}</span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}
