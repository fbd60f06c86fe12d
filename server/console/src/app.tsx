/** The console: signing in, navigation, the theme, and the page that the address names. */

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { ask } from "./api.ts";
import type { Who } from "./api.ts";
import { Keys } from "./keys.tsx";
import { useLive } from "./live.ts";
import { Overview } from "./overview.tsx";
import { Confirm } from "./parts.tsx";
import type { Question } from "./parts.tsx";
import { SessionPage } from "./session.tsx";

type Theme = "system" | "light" | "dark";
const THEME = "gradwire-console-theme";

/** The theme, of this browser; the system's without a choice. */
function useTheme(): [Theme, (theme: Theme) => void, boolean] {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem(THEME) as Theme | null) ?? "system");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const [systemDark, setSystemDark] = useState(system.matches);
  useEffect(() => {
    const changed = () => setSystemDark(system.matches);
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  }, []);
  const dark = theme === "dark" || (theme === "system" && systemDark);
  useEffect(() => {
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  }, [dark]);
  const choose = (chosen: Theme) => {
    if (chosen === "system") localStorage.removeItem(THEME);
    else localStorage.setItem(THEME, chosen);
    setTheme(chosen);
  };
  return [theme, choose, dark];
}

function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

function App() {
  const [who, setWho] = useState<Who | null | undefined>(undefined);
  const [theme, setTheme, dark] = useTheme();
  const [note, setNote] = useState("");
  const check = () => ask<Who>("GET", "console/sign-in").then(setWho, () => setWho(null));
  useEffect(() => void check(), []);
  const signOut = () => ask("DELETE", "console/sign-in").finally(() => setWho(null));
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}
      >
        Skip to the content
      </a>
      <header>
        <a class="brand" href="#/">
          <img src="console/icon.svg" alt="" width="24" height="24" /> gradwire
        </a>
        {who && (
          <nav aria-label="Pages">
            <a href="#/">What runs</a>
            {who.scopes.includes("admin") && <a href="#/keys">Keys</a>}
            <a href="docs">API</a>
          </nav>
        )}
        <div class="right">
          <label class="theme">
            <span>Theme</span>
            <select value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
              <option value="system">System</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          {who && (
            <>
              <span class="who" title={`owner ${who.tenant}; ${who.scopes.join(", ")}`}>
                {who.name || who.key}
              </span>
              <button type="button" class="quiet" onClick={() => void signOut()}>
                Sign out
              </button>
            </>
          )}
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {who === null && <SignIn done={setWho} note={note} />}
        {who && <Pages who={who} dark={dark} check={check} leave={setNote} />}
      </main>
    </>
  );
}

function SignIn({ done, note }: { done: (who: Who) => void; note: string }) {
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const key = field.current?.value.trim() ?? "";
    if (!key || !/^[\x21-\x7e]+$/.test(key)) {
      setProblem("Enter an API key, such as gw_…");
      field.current?.focus();
      return;
    }
    ask<Who>("POST", "console/sign-in", undefined, key).then(done, (error: unknown) => {
      setProblem(error instanceof Error ? error.message : String(error));
      field.current?.focus();
    });
  };
  return (
    <form class="sign-in" onSubmit={submit} noValidate>
      <h1>Sign in</h1>
      {note && <p>{note}</p>}
      <label for="key">API key</label>
      <input
        id="key"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        aria-describedby="hint problem"
        aria-invalid={problem !== ""}
      />
      <p id="hint" class="muted">
        The server prints one when it starts without keys. The key is not kept in this browser: a cookie stands for it
        until you sign out.
      </p>
      <p id="problem" class="problem" role="alert" hidden={!problem}>
        {problem}
      </p>
      <button type="submit">Sign in</button>
    </form>
  );
}

interface PagesProps {
  who: Who;
  dark: boolean;
  check: () => Promise<void>;
  leave: (note: string) => void;
}

function Pages({ who, dark, check, leave }: PagesProps) {
  const hash = useHash();
  const id = /^#\/sessions\/([\w-]+)$/.exec(hash)?.[1];
  const [said, setSaid] = useState("");
  const [question, setQuestion] = useState<Question | undefined>(undefined);
  const live = useLive(id, () => void check());
  useEffect(() => leave(live.reason ? `You were signed out: ${live.reason}.` : ""), [live.reason]);
  useEffect(() => {
    const name = live.activity?.sessions.find((each) => each.id === id)?.name;
    const title = hash === "#/keys" ? "Keys" : id ? name || id : "What runs";
    document.title = `${title} · gradwire console`;
  }, [hash, id, live.activity !== undefined]);
  useEffect(() => setSaid(""), [hash]);
  const may = (scope: string) => who.scopes.includes(scope) || (scope === "read" && who.scopes.includes("session"));
  const state = { connecting: "connecting…", live: "live", lost: "connection lost; trying again…", ended: "ended" }[
    live.connection
  ];
  return (
    <>
      <p class={`connection ${live.connection}`}>
        <span role="status">{state}</span>
        {live.activity?.draining && <span> · the server is stopping</span>}
      </p>
      <p class="said" role="status">
        {said}
      </p>
      {hash === "#/keys" && who.scopes.includes("admin") ? (
        <Keys mine={who.key} say={setSaid} confirm={setQuestion} />
      ) : id ? (
        <SessionPage key={id} id={id} live={live} dark={dark} may={may} say={setSaid} confirm={setQuestion} />
      ) : (
        <Overview live={live} />
      )}
      {question && <Confirm question={question} close={() => setQuestion(undefined)} />}
      <footer>
        {live.activity && (
          <>
            gradwire {live.activity.version} · {live.activity.session_host} sessions · signed in as {who.tenant}
          </>
        )}
      </footer>
    </>
  );
}

const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
