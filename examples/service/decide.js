// Shows the label that was decided; sends 1 for a click, and 0 if the page is left without one.
const service = "/decisions/v1";
const headline = document.getElementById("headline");

// `keepalive` lets a reward go out while the page is being left.
const post = (path, body) =>
  fetch(service + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    keepalive: true,
  });

async function decide() {
  const request = crypto.randomUUID(); // one decision for each view of the page
  const answer = await post("/experiments/headline/decide", { request });
  if (!answer.ok) throw new Error(`no decision (${answer.status})`);
  const { ticket, action } = await answer.json();
  headline.textContent = action; // as text: a label is not HTML

  let rewarded = false; // the first reward counts, and another is refused
  const reward = (value) => {
    if (rewarded) return;
    rewarded = true;
    post("/reward", { ticket, reward: value }).catch(console.warn);
  };
  headline.addEventListener("click", () => reward(1));
  addEventListener("pagehide", () => reward(0));
}

// Without a decision the page stays as it was written: nobody waits for an experiment.
decide().catch(console.warn);
