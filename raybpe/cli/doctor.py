"""`raybpe doctor`: what would run here, and how fast."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR", help="Also ask every node of this Ray cluster.", show_default=False
        ),
    ] = None,
    speed: Annotated[
        bool, typer.Option("--speed/--no-speed", help="Measure counting on one core.")
    ] = True,
) -> None:
    """Show versions, cores, memory, Ray, kernel cache: what would run, and how fast here."""
    from raybpe.cli.show import table
    from raybpe.doctor import machine_rows, speed_rows

    typer.echo(table(machine_rows(address)))
    if speed:
        typer.echo(table(speed_rows()))
    if address is not None:
        from raybpe.flow.node_facts import cluster_rows

        typer.echo(table(cluster_rows(address)))
