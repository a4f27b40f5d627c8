BEGIN TRANSACTION;
CREATE TABLE answers (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	submission TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	item_id INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	action TEXT NOT NULL, 
	label TEXT, 
	undoes INTEGER, 
	seconds FLOAT, 
	answered_at TEXT NOT NULL, 
	CONSTRAINT answers_label CHECK ((action = 'label') = (label IS NOT NULL)), 
	CONSTRAINT answers_undoes CHECK ((action = 'undo') = (undoes IS NOT NULL)), 
	CONSTRAINT answers_action CHECK (action IN ('label', 'skip', 'undo')), 
	UNIQUE (submission), 
	FOREIGN KEY(item_id) REFERENCES items (id), 
	UNIQUE (undoes), 
	FOREIGN KEY(undoes) REFERENCES answers (id)
);
INSERT INTO "answers" VALUES(1,'00000000-0000-0000-0000-000000000001','ann',14,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.122165+00:00');
INSERT INTO "answers" VALUES(2,'00000000-0000-0000-0000-000000000002','ann',26,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.124096+00:00');
INSERT INTO "answers" VALUES(3,'00000000-0000-0000-0000-000000000003','ann',2,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.125684+00:00');
INSERT INTO "answers" VALUES(4,'00000000-0000-0000-0000-000000000004','ann',8,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.127318+00:00');
INSERT INTO "answers" VALUES(5,'00000000-0000-0000-0000-000000000005','ann',29,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.128876+00:00');
INSERT INTO "answers" VALUES(6,'00000000-0000-0000-0000-000000000006','ann',11,0,'skip',NULL,NULL,NULL,'2026-11-18T06:33:10.130385+00:00');
INSERT INTO "answers" VALUES(7,'00000000-0000-0000-0000-000000000007','ann',13,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.131833+00:00');
INSERT INTO "answers" VALUES(8,'00000000-0000-0000-0000-000000000008','ann',5,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.133419+00:00');
INSERT INTO "answers" VALUES(9,'00000000-0000-0000-0000-000000000009','ann',24,0,'label','sport',NULL,1.5,'2026-11-18T06:33:10.134862+00:00');
INSERT INTO "answers" VALUES(10,'00000000-0000-0000-0000-00000000000a','ann',7,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.136289+00:00');
INSERT INTO "answers" VALUES(11,'00000000-0000-0000-0000-00000000000b','bob',14,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.142770+00:00');
INSERT INTO "answers" VALUES(12,'00000000-0000-0000-0000-00000000000c','bob',26,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.144216+00:00');
INSERT INTO "answers" VALUES(13,'00000000-0000-0000-0000-00000000000d','bob',2,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.145702+00:00');
INSERT INTO "answers" VALUES(14,'00000000-0000-0000-0000-00000000000e','bob',8,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.151339+00:00');
INSERT INTO "answers" VALUES(15,'00000000-0000-0000-0000-00000000000f','bob',29,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.155269+00:00');
INSERT INTO "answers" VALUES(16,'00000000-0000-0000-0000-000000000010','bob',11,0,'skip',NULL,NULL,NULL,'2026-11-18T06:33:10.159051+00:00');
INSERT INTO "answers" VALUES(17,'00000000-0000-0000-0000-000000000011','bob',13,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.163060+00:00');
INSERT INTO "answers" VALUES(18,'00000000-0000-0000-0000-000000000012','bob',5,0,'label','food',NULL,1.5,'2026-11-18T06:33:10.168211+00:00');
INSERT INTO "answers" VALUES(19,'00000000-0000-0000-0000-000000000013','bob',24,0,'label','sport',NULL,1.5,'2026-11-18T06:33:10.171014+00:00');
INSERT INTO "answers" VALUES(20,'00000000-0000-0000-0000-000000000014','bob',7,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.175020+00:00');
INSERT INTO "answers" VALUES(21,'00000000-0000-0000-0000-000000000015','bob',7,0,'undo',NULL,20,NULL,'2026-11-18T06:33:10.179954+00:00');
INSERT INTO "answers" VALUES(22,'00000000-0000-0000-0000-000000000016','ann',6,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.235325+00:00');
INSERT INTO "answers" VALUES(23,'00000000-0000-0000-0000-000000000017','ann',12,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.237900+00:00');
INSERT INTO "answers" VALUES(24,'00000000-0000-0000-0000-000000000018','ann',19,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.239390+00:00');
INSERT INTO "answers" VALUES(25,'00000000-0000-0000-0000-000000000019','ann',1,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.240948+00:00');
INSERT INTO "answers" VALUES(26,'00000000-0000-0000-0000-00000000001a','ann',27,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.242682+00:00');
INSERT INTO "answers" VALUES(27,'00000000-0000-0000-0000-00000000001b','ann',10,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.247218+00:00');
INSERT INTO "answers" VALUES(28,'00000000-0000-0000-0000-00000000001c','ann',16,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.248703+00:00');
INSERT INTO "answers" VALUES(29,'00000000-0000-0000-0000-00000000001d','ann',21,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.257057+00:00');
INSERT INTO "answers" VALUES(30,'00000000-0000-0000-0000-00000000001e','bob',7,0,'label','money',NULL,1.5,'2026-11-18T06:33:10.275303+00:00');
INSERT INTO "answers" VALUES(31,'00000000-0000-0000-0000-00000000001f','bob',6,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.279341+00:00');
INSERT INTO "answers" VALUES(32,'00000000-0000-0000-0000-000000000020','bob',12,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.282570+00:00');
INSERT INTO "answers" VALUES(33,'00000000-0000-0000-0000-000000000021','bob',19,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.284124+00:00');
INSERT INTO "answers" VALUES(34,'00000000-0000-0000-0000-000000000022','bob',1,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.286320+00:00');
INSERT INTO "answers" VALUES(35,'00000000-0000-0000-0000-000000000023','bob',27,1,'label','sport',NULL,1.5,'2026-11-18T06:33:10.291310+00:00');
INSERT INTO "answers" VALUES(36,'00000000-0000-0000-0000-000000000024','bob',10,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.295109+00:00');
INSERT INTO "answers" VALUES(37,'00000000-0000-0000-0000-000000000025','bob',16,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.299094+00:00');
INSERT INTO "answers" VALUES(38,'00000000-0000-0000-0000-000000000026','bob',21,1,'label','money',NULL,1.5,'2026-11-18T06:33:10.303217+00:00');
INSERT INTO "answers" VALUES(39,'00000000-0000-0000-0000-000000000027','ann',20,2,'label','food',NULL,1.5,'2026-11-18T06:33:10.365955+00:00');
INSERT INTO "answers" VALUES(40,'00000000-0000-0000-0000-000000000028','ann',25,2,'label','money',NULL,1.5,'2026-11-18T06:33:10.368333+00:00');
INSERT INTO "answers" VALUES(41,'00000000-0000-0000-0000-000000000029','ann',4,2,'label','money',NULL,1.5,'2026-11-18T06:33:10.370592+00:00');
INSERT INTO "answers" VALUES(42,'00000000-0000-0000-0000-00000000002a','bob',20,2,'label','food',NULL,1.5,'2026-11-18T06:33:10.375897+00:00');
INSERT INTO "answers" VALUES(43,'00000000-0000-0000-0000-00000000002b','bob',25,2,'label','money',NULL,1.5,'2026-11-18T06:33:10.379175+00:00');
INSERT INTO "answers" VALUES(44,'00000000-0000-0000-0000-00000000002c','bob',4,2,'label','money',NULL,1.5,'2026-11-18T06:33:10.383023+00:00');
CREATE TABLE batch_items (
	round INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	item_id INTEGER NOT NULL, 
	weight FLOAT NOT NULL, 
	score FLOAT NOT NULL, 
	role TEXT NOT NULL, 
	why JSON NOT NULL, 
	PRIMARY KEY (round, rank), 
	CONSTRAINT batch_items_role CHECK (role IN ('train', 'check')), 
	FOREIGN KEY(round) REFERENCES rounds (number), 
	UNIQUE (item_id), 
	FOREIGN KEY(item_id) REFERENCES items (id)
);
INSERT INTO "batch_items" VALUES(0,1,14,1.0,8.62046602321710375704e-01,'train','{"represents": 1}');
INSERT INTO "batch_items" VALUES(0,2,26,1.0,8.54538392751719833029e-01,'train','{"represents": 1}');
INSERT INTO "batch_items" VALUES(0,3,2,1.0,8.52063889832428311699e-01,'train','{"represents": 3}');
INSERT INTO "batch_items" VALUES(0,4,8,1.0,0.0,'check','{}');
INSERT INTO "batch_items" VALUES(0,5,29,1.0,8.46036157029788071781e-01,'train','{"represents": 2}');
INSERT INTO "batch_items" VALUES(0,6,11,1.0,8.22423729474158649033e-01,'train','{"represents": 1}');
INSERT INTO "batch_items" VALUES(0,7,13,1.0,8.61330666864842497965e-01,'train','{"represents": 5}');
INSERT INTO "batch_items" VALUES(0,8,5,1.0,0.0,'check','{}');
INSERT INTO "batch_items" VALUES(0,9,24,1.0,8.81389335057660150418e-01,'train','{"represents": 10}');
INSERT INTO "batch_items" VALUES(0,10,7,1.0,8.83648712723691387438e-01,'train','{"represents": 5}');
INSERT INTO "batch_items" VALUES(1,1,6,5.2613892559896957568e-01,1.75776367152582740915e-01,'train','{"represents": 4, "uncertainty": 0.5906709191240763, "guess": {"label": "food", "probability": 0.6096626909305725}, "neighbours": [{"item": "t24", "label": "sport", "distance": 7.4418651467929475}, {"item": "t14", "label": "food", "distance": 7.600386857686502}, {"item": "t26", "label": "food", "distance": 7.900928707179814}]}');
INSERT INTO "batch_items" VALUES(1,2,12,1.4834890648425258508e+00,7.45514894462158267396e-02,'train','{"represents": 4, "uncertainty": 0.8514865437963564, "guess": {"label": "food", "probability": 0.48670583216402286}, "neighbours": [{"item": "t24", "label": "sport", "distance": 6.680064289298376}, {"item": "t14", "label": "food", "distance": 8.140729412835757}, {"item": "t26", "label": "food", "distance": 8.350924173142147}]}');
INSERT INTO "batch_items" VALUES(1,3,19,1.0,0.0,'check','{"uncertainty": 0.7312237337466132, "guess": {"label": "money", "probability": 0.6109328795054958}}');
INSERT INTO "batch_items" VALUES(1,4,1,1.01583504152214154636e+00,6.96454547987947480969e-02,'train','{"represents": 3, "uncertainty": 0.5436915283058384, "guess": {"label": "money", "probability": 0.7058890211663803}, "neighbours": [{"item": "t13", "label": "money", "distance": 6.810323543225919}, {"item": "t7", "label": "money", "distance": 7.999944173675649}, {"item": "t14", "label": "food", "distance": 8.518279865207203}]}');
INSERT INTO "batch_items" VALUES(1,5,27,1.00784198689582060737e+00,4.571026375028921368e-02,'train','{"represents": 2, "uncertainty": 0.9005171420479732, "guess": {"label": "food", "probability": 0.45999038359890926}, "neighbours": [{"item": "t24", "label": "sport", "distance": 6.513568676867096}, {"item": "t14", "label": "food", "distance": 8.318344248813027}, {"item": "t26", "label": "food", "distance": 8.430266024730575}]}');
INSERT INTO "batch_items" VALUES(1,6,10,1.0,0.0,'check','{"uncertainty": 0.7448542061720089, "guess": {"label": "money", "probability": 0.6045026422997529}}');
INSERT INTO "batch_items" VALUES(1,7,16,8.96521214281805201018e-01,4.36884487219698636195e-02,'train','{"represents": 3, "uncertainty": 0.6686786296738971, "guess": {"label": "money", "probability": 0.6418098801886589}, "neighbours": [{"item": "t7", "label": "money", "distance": 6.7775556559260695}, {"item": "t14", "label": "food", "distance": 8.718987072146973}, {"item": "t26", "label": "food", "distance": 8.960968167517827}]}');
INSERT INTO "batch_items" VALUES(1,8,21,1.07017376685873677466e+00,2.24541138656373269466e-02,'train','{"represents": 2, "uncertainty": 0.9454757666423156, "guess": {"label": "food", "probability": 0.4526092265358465}, "neighbours": [{"item": "t24", "label": "sport", "distance": 7.357750206192338}, {"item": "t14", "label": "food", "distance": 8.78971058422534}, {"item": "t26", "label": "food", "distance": 9.139163460419176}]}');
INSERT INTO "batch_items" VALUES(2,1,20,1.69918275098308568793e+00,1.78874014997696062501e-01,'train','{"represents": 3, "uncertainty": 0.6964798476008995, "guess": {"label": "food", "probability": 0.5700768582460661}, "neighbours": [{"item": "t29", "label": "food", "distance": 9.375329479331295}, {"item": "t2", "label": "food", "distance": 10.468215504714992}, {"item": "t14", "label": "food", "distance": 10.621975160290729}]}');
INSERT INTO "batch_items" VALUES(2,2,25,5.19616840730551587945e-01,6.7389996905230287183e-02,'train','{"represents": 5, "uncertainty": 0.3967820862104101, "guess": {"label": "money", "probability": 0.7545933161757636}, "neighbours": [{"item": "t1", "label": "money", "distance": 7.7762178735911105}, {"item": "t13", "label": "money", "distance": 8.588687160799806}, {"item": "t16", "label": "money", "distance": 9.733512839894267}]}');
INSERT INTO "batch_items" VALUES(2,3,4,7.81200408286363057186e-01,4.13891649541379552657e-02,'train','{"represents": 4, "uncertainty": 0.2099078401715111, "guess": {"label": "money", "probability": 0.8665741810464994}, "neighbours": [{"item": "t7", "label": "money", "distance": 7.394457093110281}, {"item": "t16", "label": "money", "distance": 8.20887336514409}, {"item": "t1", "label": "money", "distance": 9.402630473119345}]}');
CREATE TABLE items (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "items" VALUES(0,'t0','text','ball goal ball number 0');
INSERT INTO "items" VALUES(1,'t1','text','price market bank number 1');
INSERT INTO "items" VALUES(2,'t2','text','apple cook bread number 2');
INSERT INTO "items" VALUES(3,'t3','text','match ball ball number 3');
INSERT INTO "items" VALUES(4,'t4','text','bank price price number 4');
INSERT INTO "items" VALUES(5,'t5','text','soup apple soup number 5');
INSERT INTO "items" VALUES(6,'t6','text','team match goal number 6');
INSERT INTO "items" VALUES(7,'t7','text','cost bank price number 7');
INSERT INTO "items" VALUES(8,'t8','text','bread soup apple number 8');
INSERT INTO "items" VALUES(9,'t9','text','goal team team number 9');
INSERT INTO "items" VALUES(10,'t10','text','market cost market number 10');
INSERT INTO "items" VALUES(11,'t11','text','cook bread apple number 11');
INSERT INTO "items" VALUES(12,'t12','text','ball goal match number 12');
INSERT INTO "items" VALUES(13,'t13','text','price market cost number 13');
INSERT INTO "items" VALUES(14,'t14','text','apple cook cook number 14');
INSERT INTO "items" VALUES(15,'t15','text','match ball match number 15');
INSERT INTO "items" VALUES(16,'t16','text','bank price bank number 16');
INSERT INTO "items" VALUES(17,'t17','text','soup apple bread number 17');
INSERT INTO "items" VALUES(18,'t18','text','team match ball number 18');
INSERT INTO "items" VALUES(19,'t19','text','cost bank bank number 19');
INSERT INTO "items" VALUES(20,'t20','text','bread soup soup number 20');
INSERT INTO "items" VALUES(21,'t21','text','goal team goal number 21');
INSERT INTO "items" VALUES(22,'t22','text','market cost price number 22');
INSERT INTO "items" VALUES(23,'t23','text','cook bread soup number 23');
INSERT INTO "items" VALUES(24,'t24','text','ball goal team number 24');
INSERT INTO "items" VALUES(25,'t25','text','price market market number 25');
INSERT INTO "items" VALUES(26,'t26','text','apple cook apple number 26');
INSERT INTO "items" VALUES(27,'t27','text','match ball team number 27');
INSERT INTO "items" VALUES(28,'t28','text','bank price cost number 28');
INSERT INTO "items" VALUES(29,'t29','text','soup apple cook number 29');
CREATE TABLE leases (
	item_id INTEGER NOT NULL, 
	annotator TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	leased_at TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	PRIMARY KEY (item_id, annotator), 
	FOREIGN KEY(item_id) REFERENCES items (id)
);
CREATE TABLE metrics (
	training_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	value FLOAT NOT NULL, 
	PRIMARY KEY (training_id, name), 
	FOREIGN KEY(training_id) REFERENCES trainings (id)
);
INSERT INTO "metrics" VALUES(1,'accuracy',1.0);
INSERT INTO "metrics" VALUES(1,'log_loss',9.73839657797107571823e-02);
INSERT INTO "metrics" VALUES(1,'checks',2.0);
INSERT INTO "metrics" VALUES(2,'accuracy',1.0);
INSERT INTO "metrics" VALUES(2,'log_loss',2.63163251719346624746e-01);
INSERT INTO "metrics" VALUES(2,'checks',4.0);
INSERT INTO "metrics" VALUES(3,'accuracy',1.0);
INSERT INTO "metrics" VALUES(3,'log_loss',1.27253871358782882916e-01);
INSERT INTO "metrics" VALUES(3,'checks',4.0);
CREATE TABLE migrations (
	number INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	applied_at TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "migrations" VALUES(1,'first tables','2026-11-18T06:33:09.122495+00:00');
CREATE TABLE rounds (
	number INTEGER NOT NULL, 
	strategy TEXT NOT NULL, 
	seed BIGINT, 
	chosen_at TEXT NOT NULL, 
	seconds FLOAT NOT NULL, 
	evidence JSON NOT NULL, 
	training_id INTEGER, 
	PRIMARY KEY (number)
);
INSERT INTO "rounds" VALUES(0,'typiclust',2968811710,'2026-11-18T06:33:10.102807+00:00',6.33785209993220632895e-02,'{"items": 25, "budget": 8, "clusters": 8, "clusters_used": 4, "from_small_clusters": 3, "largest_cluster": 5, "warnings": ["3 of 8 items are from clusters of fewer than 5"], "seconds": 0.06110466700010875, "options": {}, "megabytes": 7.23046875}',NULL);
INSERT INTO "rounds" VALUES(1,'sabal',3964924996,'2026-11-18T06:33:10.212055+00:00',4.70461400072963442653e-03,'{"items": 17, "budget": 6, "atoms": "coverage", "candidates": 17, "labeled": 7, "radius": 5.30372280681369, "objective": 0.13510752423681038, "objective_before": 0.5669336619723, "random_batch": {"objective": 0.2359256910365375}, "zero_weights": 0, "passes": 1, "kernel_rows": 17, "warnings": [], "seconds": 0.002026987000135705, "options": {}, "megabytes": 0.29296875}',1);
INSERT INTO "rounds" VALUES(2,'sabal',3141116543,'2026-11-18T06:33:10.350694+00:00',4.12237499949696939438e-03,'{"items": 11, "budget": 3, "atoms": "coverage", "candidates": 11, "labeled": 13, "radius": 7.2443223620935155, "objective": 0.19129310536942368, "objective_before": 0.47894628222648794, "random_batch": {"objective": 0.2535561407175362}, "zero_weights": 0, "passes": 1, "kernel_rows": 11, "warnings": [], "seconds": 0.0015883519990893546, "options": {}, "megabytes": 0.07421875}',2);
CREATE TABLE settings (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	content JSON NOT NULL, 
	recorded_at TEXT NOT NULL
);
INSERT INTO "settings" VALUES(1,'{"classes": ["sport", "money", "food"], "budget": 20, "lease_seconds": 300.0, "overlap": 2, "name": "old", "kind": "text", "data": "DATA", "text_column": null, "id_column": null, "database_url": null, "strategy": "sabal", "first": "typiclust", "initial": 8, "batch": 6, "seed": 0, "choose_at": 0.8, "check_share": 0.25, "weighted": false, "options": {}, "backbone": "tfidf", "size": 64, "head": "linear", "show_guess": false}','2026-11-18T06:33:09.125511+00:00');
CREATE TABLE states (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	state TEXT NOT NULL, 
	progress FLOAT NOT NULL, 
	error TEXT, 
	at TEXT NOT NULL
);
INSERT INTO "states" VALUES(1,'features',0.0,NULL,'2026-11-18T06:33:09.141437+00:00');
INSERT INTO "states" VALUES(2,'features',1.0,NULL,'2026-11-18T06:33:10.028900+00:00');
INSERT INTO "states" VALUES(3,'choosing',1.0,NULL,'2026-11-18T06:33:10.034746+00:00');
INSERT INTO "states" VALUES(4,'waiting',1.0,NULL,'2026-11-18T06:33:10.110889+00:00');
INSERT INTO "states" VALUES(5,'training',1.0,NULL,'2026-11-18T06:33:10.188862+00:00');
INSERT INTO "states" VALUES(6,'choosing',1.0,NULL,'2026-11-18T06:33:10.206029+00:00');
INSERT INTO "states" VALUES(7,'waiting',1.0,NULL,'2026-11-18T06:33:10.223206+00:00');
INSERT INTO "states" VALUES(8,'training',1.0,NULL,'2026-11-18T06:33:10.311539+00:00');
INSERT INTO "states" VALUES(9,'choosing',1.0,NULL,'2026-11-18T06:33:10.341337+00:00');
INSERT INTO "states" VALUES(10,'waiting',1.0,NULL,'2026-11-18T06:33:10.359298+00:00');
INSERT INTO "states" VALUES(11,'training',1.0,NULL,'2026-11-18T06:33:10.391439+00:00');
INSERT INTO "states" VALUES(12,'idle',1.0,NULL,'2026-11-18T06:33:10.409300+00:00');
CREATE TABLE trainings (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	round INTEGER NOT NULL, 
	labels INTEGER NOT NULL, 
	last_answer INTEGER NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
	seconds FLOAT, 
	model TEXT, 
	error TEXT, 
	FOREIGN KEY(round) REFERENCES rounds (number)
);
INSERT INTO "trainings" VALUES(1,0,7,21,'2026-11-18T06:33:10.189954+00:00','2026-11-18T06:33:10.201973+00:00',7.64461400103755295276e-03,'models/training-000001.safetensors',NULL);
INSERT INTO "trainings" VALUES(2,1,13,38,'2026-11-18T06:33:10.319174+00:00','2026-11-18T06:33:10.334395+00:00',1.19930960008787224069e-02,'models/training-000002.safetensors',NULL);
INSERT INTO "trainings" VALUES(3,2,16,44,'2026-11-18T06:33:10.394958+00:00','2026-11-18T06:33:10.403611+00:00',7.94415599921194370836e-03,'models/training-000003.safetensors',NULL);
CREATE INDEX answers_of_annotator ON answers (annotator, id);
CREATE INDEX answers_of_item ON answers (item_id, annotator, action, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('settings',1);
INSERT INTO "sqlite_sequence" VALUES('states',12);
INSERT INTO "sqlite_sequence" VALUES('answers',44);
INSERT INTO "sqlite_sequence" VALUES('trainings',3);
COMMIT;
