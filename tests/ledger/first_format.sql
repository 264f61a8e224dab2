BEGIN TRANSACTION;
CREATE TABLE privatest_ledger_head (
	id INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	count INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "privatest_ledger_head" VALUES(1,1,6,'2da2cb741c68f0e44e420ef21c776381ebec2a0a42bd3a36a39cddf77117ed81');
CREATE TABLE privatest_ledger_rows (
	sequence INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	dataset TEXT NOT NULL, 
	request TEXT, 
	epsilon TEXT NOT NULL, 
	design TEXT, 
	granted TEXT NOT NULL, 
	spent TEXT NOT NULL, 
	release TEXT, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (sequence), 
	CONSTRAINT privatest_ledger_once UNIQUE (dataset, request, kind)
);
INSERT INTO "privatest_ledger_rows" VALUES(1,'2026-11-16T17:34:15.595750+00:00','grant','claims',NULL,'2/1',NULL,'2/1','0/1',NULL,'0000000000000000000000000000000000000000000000000000000000000000','07e8970eff362800365cbfef49545db73f9e9132b062609563c5bfb6bf87d2bd');
INSERT INTO "privatest_ledger_rows" VALUES(2,'2026-11-16T17:34:17.333970+00:00','charge','claims','q1','1/2','sha256:82e21d370b27db46e0708d33f6072d1e06dcf10a524ad203e85d50fea1101e19','2/1','1/2',NULL,'07e8970eff362800365cbfef49545db73f9e9132b062609563c5bfb6bf87d2bd','1fac8f99a781dd6d891cbc678590e33765ebfc30dff5fcf87b2d708131942f23');
INSERT INTO "privatest_ledger_rows" VALUES(3,'2026-11-16T17:34:17.394716+00:00','release','claims','q1','1/2','sha256:82e21d370b27db46e0708d33f6072d1e06dcf10a524ad203e85d50fea1101e19','2/1','1/2','{"decision": "alternative", "statistic": -1.934833922980156, "pvalue": 0.11836770923555542, "epsilon": 0.5, "n": 8, "test": "tight", "neighbours": "replace", "simulated": false, "private": true}','1fac8f99a781dd6d891cbc678590e33765ebfc30dff5fcf87b2d708131942f23','3f42268e23f1fbd7fadbf7d2d9446cf85fbb93e87178c5ffae2ba65d938077df');
INSERT INTO "privatest_ledger_rows" VALUES(4,'2026-11-16T17:34:17.447297+00:00','charge','claims','q2','1/4','sha256:aa','2/1','3/4',NULL,'3f42268e23f1fbd7fadbf7d2d9446cf85fbb93e87178c5ffae2ba65d938077df','596a5ec316c47f176e9f6511630f5a1edff2fb76dc0801488cf8e7c21b1f6955');
INSERT INTO "privatest_ledger_rows" VALUES(5,'2026-11-16T17:34:17.512492+00:00','charge','claims','third','3333333333333333/10000000000000000','sha256:466254b9372a681bf53e7347fd506f3bed7af711db7594377e5cb0a619dd27a6','2/1','10833333333333333/10000000000000000',NULL,'596a5ec316c47f176e9f6511630f5a1edff2fb76dc0801488cf8e7c21b1f6955','1a9f1bb8e5556a223638d51b780857159563bb6a92c455ee3ef89c5f63b9f034');
INSERT INTO "privatest_ledger_rows" VALUES(6,'2026-11-16T17:34:17.550213+00:00','release','claims','third','3333333333333333/10000000000000000','sha256:466254b9372a681bf53e7347fd506f3bed7af711db7594377e5cb0a619dd27a6','2/1','10833333333333333/10000000000000000','{"decision": "alternative", "statistic": -0.6537352636777297, "pvalue": 0.2622290349930371, "epsilon": 0.3333333333333333, "n": 8, "test": "ncllr", "neighbours": "replace", "simulated": false, "private": true}','1a9f1bb8e5556a223638d51b780857159563bb6a92c455ee3ef89c5f63b9f034','2da2cb741c68f0e44e420ef21c776381ebec2a0a42bd3a36a39cddf77117ed81');
CREATE INDEX privatest_ledger_newest ON privatest_ledger_rows (dataset, sequence);
COMMIT;
