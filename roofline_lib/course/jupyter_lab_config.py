# The settings that the course starts JupyterLab with; what depends on a place stands in command.py.
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (Jupyter puts it there)
c.ServerApp.allow_root = True  # a container's only user is often root
# its overrides.json: no question about news before the first lesson
c.LabApp.app_settings_dir = str(Path(__file__).resolve().with_name("lab_settings"))
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"

# A slider sends many small messages. By default the server holds each answer back until the browser
# has acknowledged the one before it (Nagle's algorithm), up to 40 ms a step. Without the class
# below all works, only slower.
try:
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

    class NoDelayConnection(ZMQChannelsWebsocketConnection):
        def connect(self):
            self.websocket_handler.set_nodelay(True)
            return super().connect()

    c.ServerApp.kernel_websocket_connection_class = NoDelayConnection
except ImportError:  # a jupyter_server from before this interface, or after it
    pass
