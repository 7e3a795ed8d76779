from property_tests import multiply_examples, register_profiles

register_profiles()


def pytest_collection_modifyitems(config, items):
    if config.getoption("--hypothesis-profile") == "fuzz":
        multiply_examples(items)
    else:
        items[:] = [item for item in items if "endurance" not in item.keywords]
