"""A small GPT that learns to write, one character at a time, from a text of a few pages.

    python char_gpt.py                  # some minutes; words, and now and then a sentence
    python char_gpt.py --quick          # a hundred steps; the first words appear
    python char_gpt.py --text FILE
"""

import argparse
import time
from pathlib import Path

import baregrad as bg
from baregrad import nn

TEXT = Path(__file__).parent / "text" / "engine.txt"


class GPT(nn.Module):
    """Maps the previous characters to the scores of the next one."""

    def __init__(self, characters, context, width, heads, layers):
        super().__init__()
        self.context = context
        self.token = nn.Embedding(characters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                heads,
                dim_feedforward=4 * width,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(bg.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, is_causal=True)  # no character sees the following ones
        return self.head(self.norm(x))


class Windows(bg.data.Dataset):
    """Every window of the text, and the same window shifted by one character."""

    def __init__(self, tokens, length):
        self.tokens, self.length = tokens, length

    def __len__(self):
        return len(self.tokens) - self.length

    def __getitem__(self, i):
        return self.tokens[i : i + self.length], self.tokens[i + 1 : i + 1 + self.length]


@bg.no_grad()
def sample(model, tokens, count, temperature=0.7):
    """Appends as many tokens as asked for, each drawn by the model's probabilities."""
    for _ in range(count):
        scores = model(bg.tensor([tokens[-model.context :]]))[0, -1]
        # The maximum of scores with Gumbel noise is a draw from their softmax.
        noise = -bg.log(-bg.log(bg.rand(scores.shape)))
        tokens = [*tokens, int((scores / temperature + noise).argmax())]
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=TEXT)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--quick", action="store_true", help="a smaller network, a hundred steps")
    args = parser.parse_args()
    steps, context, width, layers = (
        (100, 48, 64, 2) if args.quick else (args.steps, 96, 128, 4)
    )

    text = args.text.read_text()
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    tokens = bg.tensor([number[character] for character in text])

    bg.manual_seed(0)
    model = GPT(len(alphabet), context, width, heads=4, layers=layers)
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(text)} characters, {len(alphabet)} different ones; {size} weights")

    loader = bg.data.DataLoader(Windows(tokens, context), batch_size=16, shuffle=True)
    optimizer = bg.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = bg.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, total_steps=steps, pct_start=0.1, cycle_momentum=False
    )
    began, step = time.perf_counter(), 0
    while step < steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x).reshape(-1, len(alphabet)), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            bg.optim.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % max(1, steps // 10) == 0 or step == steps - 1:
                print(f"step {step:4}  loss {loss.item():.3f}")
            step += 1
            if step == steps:
                break
            schedule.step()
    print(f"trained in {time.perf_counter() - began:.0f} s; now it writes:\n")
    beginning = [number[character] for character in "A tensor "]
    written = sample(model, beginning, 200 if args.quick else 600)
    print("".join(alphabet[token] for token in written))


if __name__ == "__main__":
    main()
