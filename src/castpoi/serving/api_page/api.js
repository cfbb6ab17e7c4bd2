// Shows /openapi.json as a page on which every route can be tried; nothing is loaded from elsewhere.
"use strict";

const make = (tag, content = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), content);
  element.append(...children);
  return element;
};

const resolve = (api, schema) =>
  schema?.$ref ? schema.$ref.split("/").slice(1).reduce((at, word) => at[word], api) : schema;

// "integer, 1 to 100", as words for a schema
function words(api, given) {
  const schema = resolve(api, given) ?? {};
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map((one) => words(api, one)).join(" or ");
  if (schema.type === "array") return `list of ${words(api, schema.items)}`;
  const range = [schema.minimum, schema.maximum].some((edge) => edge !== undefined)
    ? `, ${schema.minimum ?? "…"} to ${schema.maximum ?? "…"}` : "";
  return (schema.title && schema.properties ? schema.title : schema.format ?? schema.type ?? "any") + range;
}

function table(api, rows) {
  const body = rows.map(([name, schema, required, about]) => make("tr", {},
    make("td", {}, make("code", { textContent: name })),
    make("td", { textContent: words(api, schema) + (required ? ", required" : "") }),
    make("td", { textContent: about ?? "" })));
  return make("table", {}, ...body);
}

function fields(api, given) {
  const schema = resolve(api, given) ?? {};
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map((one) => fields(api, one)).flat();
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    [name, field, (schema.required ?? []).includes(name), field.description]);
  return [make("h4", { textContent: schema.title ?? "" }), table(api, rows)];
}

const EXAMPLES = {
  "/v1/recommend": { history: [], k: 5, explain: false },
  "/v1/explain": { history: [], k: 3 },
  "/v1/visits": { user: "somebody", place: "PLACE", at: "2012-04-03T18:00:09-04:00" },
};

function trial(path, method, operation) {
  const inputs = (operation.parameters ?? []).map((parameter) => ({
    ...parameter, input: make("input", { placeholder: parameter.name }),
  }));
  const body = operation.requestBody
    ? make("textarea", { value: JSON.stringify(EXAMPLES[path] ?? {}, null, 2), spellcheck: false }) : null;
  const answer = make("pre", { hidden: true });
  const button = make("button", { textContent: "Try it" });
  button.onclick = async () => {
    let address = path;
    const query = new URLSearchParams();
    for (const { name, in: where, input } of inputs) {
      if (where === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(name, input.value);
    }
    const key = document.getElementById("key").value;
    const headers = { ...(body && { "Content-Type": "application/json" }), ...(key && { Authorization: `Bearer ${key}` }) };
    const asked = query.size ? `..${address}?${query}` : `..${address}`;
    answer.hidden = false;
    try {
      const response = await fetch(asked, { method: method.toUpperCase(), headers, body: body?.value });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
      answer.textContent = `${response.status}\n${shown}`;
    } catch (problem) {
      answer.textContent = String(problem);
    }
  };
  return [...inputs.map(({ input }) => input), ...(body ? [body] : []), make("div", {}, button), answer];
}

function route(api, path, method, operation) {
  const inside = make("div", { className: "inside" },
    make("p", { textContent: operation.description ?? "" }));
  if (operation.parameters?.length) {
    inside.append(make("h4", { textContent: "Parameters" }), table(api, operation.parameters.map((one) =>
      [one.name, one.schema, one.required, one.description])));
  }
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  if (body) inside.append(...fields(api, body));
  const answer = operation.responses?.["200"]?.content?.["application/json"]?.schema;
  if (answer) inside.append(make("h4", { textContent: "Answer" }), ...fields(api, answer));
  inside.append(...trial(path, method, operation));
  return make("details", {},
    make("summary", {}, make("b", { textContent: method.toUpperCase() }), make("code", { textContent: path }),
      make("span", { textContent: (operation.description ?? "").split("\n")[0] })), inside);
}

fetch("../openapi.json").then((response) => response.json()).then((api) => {
  document.getElementById("about").textContent = api.info.description;
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      document.getElementById("routes").append(route(api, path, method, operation));
    }
  }
});
