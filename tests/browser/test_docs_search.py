"""The documentation's search finds what is asked for among its first three, whoever asks and however it is spelled."""

from __future__ import annotations

import json
import subprocess

import pytest

import docs_site
from paths import ROOT
from vendor import MODULES

MINISEARCH = MODULES / "minisearch" / "dist" / "es" / "index.js"
SCRIPT = """
const [library, ranking] = process.argv.slice(1, 3);
const [entries, questions] = JSON.parse(require('fs').readFileSync(0));
Promise.all([import(library), import(ranking)]).then(([{ default: MiniSearch }, { indexed, found }]) => {
  const search = indexed(MiniSearch, entries);
  console.log(JSON.stringify(questions.map((question) => found(search, question, 8).map(({ name }) => name))));
});
"""

ANSWERS = {
    "how to save a model": {"Train.save", "tg.save"},
    "how do I load PyTorch weights": {"Train.load"},
    "cross entropy loss": {"nn.CrossEntropyLoss", "tg.cross_entropy"},
    "mean squared error": {"tg.mse_loss"},
    "learning rate schedule": {"Learning-rate schedules"},
    "lr scheduler": {"Learning-rate schedules"},
    "split a tensor": {"tg.split"},
    "concatenate tensors": {"tg.concat"},
    "what is the shape of a tensor?": {"Tensor.shape"},
    "sum over an axis": {"tg.sum"},
    "matrix multiplication": {"tg.matmul"},
    "softmax": {"tg.softmax", "nn.Softmax"},
    "the softmax of a tensor": {"tg.softmax"},
    "sofmax": {"tg.softmax"},
    "optimzer": {"Optimizers", "optim.Optimizer"},
    "batch norm": {"tg.batch_norm"},
    "freeze weights": {"Module.requires_grad_"},
    "freezing layers": {"Module.requires_grad_"},
    "initialize weights": {"Initial values"},
    "activation functions": {"Activations"},
    "dense layer": {"tg.linear"},
    "read a csv": {"Your own data"},
    "nan in loss": {"A loss that is NaN"},
    "gradient of a function": {"tg.grad"},
    "gradient clipping": {"Averages and clipping", "optim.clip_grad_norm"},
    "shuffle batches": {"tg.data.DataLoader"},
    "data loader": {"tg.data.DataLoader"},
    "out of memory": {"tg.OutOfMemoryError"},
    "a Jupyter notebook": {"JupyterLite"},
    "embed it in my page": {"For your page"},
    "where": {"tg.where"},
    "to": {"Tensor.to"},
    "constructor": set(),  # a name that every object of JavaScript has
    "nn.conv2d": {"nn.Conv2d"},
    "train.save": {"Train.save"},
    "load csv file": {"Your own data"},
    "use pytorch weights": {"PyTorch's weights"},
    "plot": {"The page"},
    "zero_grad": {"The training step"},
    "train test split": {"tg.data.random_split"},
    "convolution": {"nn.Conv2d"},
    "embedding": {"nn.Embedding", "tg.embedding"},
    "reduce lr on plateau": {"Schedules and early stopping"},
    "early stopping": {"Schedules and early stopping"},
    "batch size": {"tg.data.DataLoader"},
    "save model": {"Train.save", "tg.save"},
    "gpu not found": {"tg.NoDeviceError"},
    "cuda out of memory": {"tg.OutOfMemoryError"},
    "one hot": {"tg.one_hot"},
    "softmax cross entropy": {"tg.cross_entropy"},
    "dtype": {"tg.DType"},
    "freeze layer": {"Module.requires_grad_"},
    "print shape": {"Tensor.shape"},
    "numpy to tensor": {"Tensors and arrays"},
    ".item()": {"Tensor.item"},
    ".cuda()": {"Module.cuda"},
    "requires_grad": {"Module.requires_grad_"},
    "no_grad": {"Freezing, no_grad and detach"},
    "DataLoader": {"tg.data.DataLoader"},
    "dropout eval mode": {"Module.eval"},
    "clip gradients": {"optim.clip_grad_norm"},
    "nan loss": {"A loss that is NaN"},
    "model.eval()": {"Module.eval"},
    "loss.backward()": {"The training step"},
    "optimizer.step()": {"The training step"},
    "validation loss": {"Train.fit"},
    "compute accuracy": {"Evaluation"},
    "weight decay": {"optim.AdamW"},
    "detach": {"Tensor.detach", "tg.stop_gradient"},
    "random seed": {"nn.init.manual_seed"},
    "flatten image": {"nn.Flatten", "tg.flatten"},
    "transformer": {"nn.Transformer"},
    "lstm": {"nn.LSTM"},
    "number of parameters": {"Module.parameters"},
    "torch.load": {"PyTorch's weights", "Train.load"},
    "state_dict": {"Module.state_dict", "Train.state_dict"},
    "mixed precision training": {"Mixed precision"},
    "draw the loss curve": {"The page"},
    "show an image": {"The page"},
    "upload a file": {"tg.browser.upload"},
    "in-place operation": {"Tensors and arrays"},
    "model.to(device)": {"Module.to"},
    "unsqueeze": {"tg.expand_dims"},
    "tensor view": {"tg.reshape"},
    "xavier initialization": {"nn.init.xavier_uniform_"},
    "custom layer": {"nn.Module"},
    "padding": {"tg.pad"},
    "slice a tensor": {"tg.getitem"},
    "moving average of weights": {"Averages and clipping"},
    "resume training": {"Train.resume"},
    "is my gpu used": {"Where it runs"},
    "float64": {"Tensors and arrays"},
    "install": {"Install"},
    "tensor to numpy": {"Tensor.numpy"},
    "torch.from_numpy": {"Tensors and arrays"},
    "fine tune": {"PyTorch's weights"},
    "gradient accumulation": {"The training step"},
    "half precision": {"tg.f16"},
    "float16": {"Tensors and arrays"},
    "embed a cell": {"A cell: <tensor-grad>"},
    "label smoothing": {"tg.cross_entropy"},
    "concatenation": {"tg.concat"},
}


@pytest.fixture(scope="module")
def answers() -> dict[str, list[str]]:
    """What each question finds first."""
    entries = docs_site.rendered()["search.json"]
    assert isinstance(entries, str)
    command = ["node", "-e", SCRIPT, MINISEARCH.as_uri(), (ROOT / "web" / "js" / "docs_ranking.js").as_uri()]
    asked = json.dumps([json.loads(entries), list(ANSWERS)])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return dict(zip(ANSWERS, found, strict=True))


@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_finds_its_page_first(question: str, answers: dict[str, list[str]]) -> None:
    assert ANSWERS[question] <= set(answers[question][:3]), answers[question]


def test_a_word_is_not_taken_for_another_that_it_comes_from(answers: dict[str, list[str]]) -> None:
    """To embed something in a page has nothing to do with embeddings."""
    assert not {"The page", "For your page"} & set(answers["embedding"])
