// Shows /openapi.json as a page on which every route can be tried; nothing is loaded from elsewhere.

const PYTHON = {
  recommend: 'client.recommend("470", k=5, near=(40.73, -73.99), within_km=2)',
  explain: 'client.recommend("470", k=5, explain=True)',
  recommend_batch: 'client.recommend_batch(["470", "471"], k=20)',
  post_visits: 'client.add_visit("470", "cafe", "2012-04-03T18:00:09-04:00")',
  user_visits: 'client.visits("470")',
  erase_user: 'client.erase("470")',
  find_places: 'list(client.places(q="coffee"))',
  model_card: "client.model()",
};
const TYPES = { "date-time": "time" };

const make = (tag, content = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), content);
  element.append(...children);
  return element;
};

// A text in which `words` between backticks are code.
const prose = (text) =>
  (text ?? "").split("`").map((part, at) => (at % 2 ? make("code", { textContent: part }) : part));

const title = (text, ...children) => make("h4", { textContent: text }, ...children);

function reader(api) {
  const resolve = (schema) =>
    schema?.$ref
      ? schema.$ref.split("/").slice(1).reduce((at, word) => at[word], api)
      : (schema ?? {});

  function choices(schema) {
    const found = resolve(schema);
    const several = found.anyOf ?? found.oneOf;
    return several ? several.flatMap(choices) : [found];
  }

  // "integer, 1 to 100", as words for a schema
  const words = (given) =>
    choices(given)
      .map((schema) => {
        if (schema.type === "array") return `list of ${words(schema.items)}`;
        if (schema.enum) return schema.enum.join(" or ");
        const low = schema.minimum ?? schema.exclusiveMinimum;
        const high = schema.maximum;
        let range = "";
        if (low !== undefined) range = high === undefined ? `, from ${low}` : `, ${low} to ${high}`;
        const type = schema.properties ? "object" : (schema.format ?? schema.type ?? "any");
        return (TYPES[type] ?? type) + range;
      })
      .filter((word, at, all) => word !== "null" && all.indexOf(word) === at)
      .join(" or ") + (choices(given).some((each) => each.type === "null") ? ", or null" : "");

  // Rows of all fields of a schema, each with its depth; the fields of an object follow it.
  function rows(given, depth = 0, shown = new Set()) {
    const found = [];
    for (const each of choices(given)) {
      if (each.type === "array") found.push(...rows(each.items, depth));
      for (const [name, field] of Object.entries(each.properties ?? {})) {
        if (shown.has(name)) continue;
        shown.add(name);
        const needed = (each.required ?? []).includes(name) ? ", required" : "";
        found.push([name, words(field) + needed, field.description ?? "", depth]);
        found.push(...rows(field, depth + 1));
      }
    }
    return found;
  }

  return { choices, words, rows };
}

function table(rows) {
  const lines = rows.map(([name, type, about, depth]) => {
    const cell = make("td", {}, make("code", { textContent: name }));
    if (depth) cell.style.paddingLeft = `${depth * 1.2}rem`;
    return make(
      "tr",
      {},
      cell,
      make("td", { textContent: type }),
      make("td", {}, ...prose(about)),
    );
  });
  return make("table", {}, make("tbody", {}, ...lines));
}

function exampleOf(read, schema) {
  const found = read.choices(schema).flatMap((each) => each.examples ?? []);
  return found[0] ?? {};
}

function curl(path, method, body) {
  const words = [`curl ${location.origin}${path}`];
  if (method !== "get" && method !== "post") words.push(`-X ${method.toUpperCase()}`);
  words.push("-H 'Authorization: Bearer KEY'");
  if (body) words.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`);
  return words.join(" \\\n  ");
}

function trial(path, method, parameters, body) {
  const inputs = parameters.map((parameter) => ({
    ...parameter,
    input: make("input", { placeholder: parameter.name, ariaLabel: parameter.name }),
  }));
  const text = body && make("textarea", {
    value: JSON.stringify(body, null, 2),
    rows: Math.min(12, JSON.stringify(body, null, 2).split("\n").length),
    spellcheck: false,
    ariaLabel: "Body",
  });
  const answer = make("pre", { hidden: true, tabIndex: 0, ariaLive: "polite" });
  const button = make("button", { type: "button", className: "main", textContent: "Send" });
  button.onclick = async () => {
    let address = path;
    const query = new URLSearchParams();
    for (const { name, in: where, input } of inputs) {
      if (where === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(name, input.value);
    }
    const key = document.getElementById("key").value;
    const headers = {
      ...(text && { "Content-Type": "application/json" }),
      ...(key && { Authorization: `Bearer ${key}` }),
    };
    answer.hidden = false;
    try {
      const response = await fetch(`..${address}${query.size ? `?${query}` : ""}`, {
        method: method.toUpperCase(),
        headers,
        body: text?.value,
      });
      const received = await response.text();
      let shown = received;
      try {
        shown = JSON.stringify(JSON.parse(received), null, 2);
      } catch {
        /* not one JSON value: as it is */
      }
      answer.textContent = `${response.status}\n${shown}`;
    } catch (problem) {
      answer.textContent = String(problem);
    }
  };
  const parts = inputs.map(({ input }) => input);
  if (text) parts.push(text);
  return make("div", { className: "trial" }, title("Try it"), ...parts, button, answer);
}

function errorRows(responses) {
  return Object.entries(responses)
    .filter(([status]) => status >= 400)
    .map(([status, { description }]) => [status, "", description]);
}

function route(read, path, method, operation) {
  const [first, ...others] = (operation.description ?? "").split("\n\n");
  const inside = make("div", { className: "inside" });
  for (const text of others) inside.append(make("p", {}, ...prose(text)));
  const parameters = operation.parameters ?? [];
  if (parameters.length) {
    const rows = parameters.map(({ name, schema, required, description }) => [
      name,
      read.words(schema) + (required ? ", required" : ""),
      description,
    ]);
    inside.append(title("Parameters"), table(rows));
  }
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const body = schema ? exampleOf(read, schema) : null;
  if (schema) inside.append(title("Body"), table(read.rows(schema)));
  const content = operation.responses?.["200"]?.content ?? {};
  const answer = read
    .rows(content["application/json"]?.schema)
    .map(([name, type, ...others]) => [name, type.replace(", required", ""), ...others]);
  const types = Object.keys(content).filter((type) => type !== "application/json");
  if (answer.length) inside.append(title("Answer"), table(answer));
  if (types.length) inside.append(make("p", { textContent: `Also: ${types.join(", ")}` }));
  inside.append(
    title("Errors"),
    table(errorRows(operation.responses)),
    make("pre", { textContent: '{"error": "k: Input should be less than or equal to 100",\n "fields": [{"field": "k", "problem": "Input should be less than or equal to 100"}]}' }),
    title("With curl"),
    make("pre", { textContent: curl(path, method, body) }),
  );
  const call = PYTHON[operation.operationId];
  if (call) {
    const client = `client = castpoi.Client("${location.origin}", "KEY")\n${call}`;
    inside.append(title("With Python"), make("pre", { textContent: `import castpoi\n\n${client}` }));
  }
  inside.append(trial(path, method, parameters, body));
  const name = make("code", { textContent: path });
  const about = make("span", {}, ...prose(first));
  const line = make("summary", {}, make("b", { textContent: method.toUpperCase() }), name, about);
  return make("details", { id: operation.operationId }, line, inside);
}

function openTarget() {
  const found = document.getElementById(location.hash.slice(1));
  if (found instanceof HTMLDetailsElement) {
    found.open = true;
    found.scrollIntoView();
  }
}

const api = await (await fetch("../openapi.json")).json();
const read = reader(api);
document.getElementById("about").append(...prose(api.info.description));
const sections = new Map();
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const tag = operation.tags?.[0] ?? "other";
    if (!sections.has(tag)) {
      const heading = tag.charAt(0).toUpperCase() + tag.slice(1);
      const section = make("section", {}, make("h2", { textContent: heading }));
      const list = make("div", {}, make("h2", { textContent: heading }));
      document.getElementById("routes").append(section);
      document.getElementById("contents").append(list);
      sections.set(tag, [section, list]);
    }
    const [section, list] = sections.get(tag);
    section.append(route(read, path, method, operation));
    const target = `#${operation.operationId}`;
    list.append(make("a", { href: target, textContent: `${method.toUpperCase()} ${path.replace("/v1", "")}` }));
  }
}
addEventListener("hashchange", openTarget);
openTarget();
