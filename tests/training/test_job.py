from castpoi.training.job import World


def test_without_torchrun_a_process_is_alone_and_first() -> None:
    world = World.from_environment({"WORLD_SIZE": "4"})
    assert (world.rank, world.ranks, world.is_first) == (0, 1, True)


def test_the_environment_of_torchrun_has_the_rank_of_this_process() -> None:
    words = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost"}
    world = World.from_environment(words)
    assert (world.rank, world.ranks, world.local_rank, world.is_first) == (3, 4, 1, False)
