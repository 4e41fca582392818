"""The role the service and its workers connect as."""

from psycopg import sql
from sqlalchemy import URL, make_url

from service.data.db.engine import open_engine

APP_ROLE = "scrim_app"


def enable_app_login(url: str | URL, *, password: str) -> URL:
    """Let the application's role log in with `password`; returns the database URL of that role.

    The migrations create the role and its grants. `url` is the owner's.
    """
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            # Hashed here, so the plain password never reaches the server or its log.
            secret = driver.pgconn.encrypt_password(
                password.encode(), APP_ROLE.encode(), b"scram-sha-256"
            ).decode()
            role = sql.Identifier(APP_ROLE)
            driver.execute(
                sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(secret))
            )
            driver.execute(
                sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
                    sql.Identifier(driver.info.dbname), role
                )
            )
    finally:
        engine.dispose()
    return make_url(url).set(username=APP_ROLE, password=password)
