import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

@pytest.fixture(scope="session")
def spark():
    """A session of Sail: what speaks Spark's protocol without a Java machine."""
    pytest.importorskip("pyspark")
    server = pytest.importorskip("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    from pyspark.sql import SparkSession

    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    session.conf.set("spark.sql.shuffle.partitions", "3")
    yield session
    session.stop()
    server.stop()
