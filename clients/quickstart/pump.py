import time
from fleetpost import Device

def on_mail(mail):
    print(mail.name, mail.payload)  # returning acknowledges, an exception rejects

device = Device("https://127.0.0.1:8443", "ORCHARD1", "PUMP000001", "FOS-…",
                ca="data/tls/cert.pem", queue="pump.db")
device.on_mail(on_mail)
while True:
    device.datapoint("flow", {"litres": 12.5})
    time.sleep(10)
