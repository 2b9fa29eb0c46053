"""`counterfoil dlq`: dead letters and what people do about them. It only names the commands."""

import typer

from counterfoil.cli import corrections, dead_letters, plans

app = typer.Typer(no_args_is_help=True)

app.command("list")(dead_letters.list_)
app.command()(dead_letters.show)
app.command()(dead_letters.export)
app.command()(corrections.fix)
app.command()(plans.plan)
app.command("plans")(plans.plans)
app.command()(plans.replay)
app.command()(plans.discard)
app.command("look-first")(plans.look_first)
app.command()(plans.stop)
app.command()(dead_letters.acts)
